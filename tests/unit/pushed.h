/*
 * pushed.h - chunks that a test generates go to reader and model at once.
 */
#ifndef PUSHED_H
#define PUSHED_H

#include "../../collector/read/feed.h"
#include "gen.h"

static struct feed feed;

static void push(void *to, const union chunk *c)
{
	union chunk *copy = merge_chunk(feed.merge);

	(void)to;
	*copy = *c;
	merge_push(feed.merge, copy);
}

#endif
