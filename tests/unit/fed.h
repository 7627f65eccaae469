/*
 * fed.h - chunks that a test generates are kept, and then fed to reader and model as they came.
 */
#ifndef FED_H
#define FED_H

#include "../../collector/read/feed.h"
#include "../../collector/util/array.h"
#include "gen.h"

static struct { union chunk *chunk; u32 count, room; } fed;

static void fed_keep(void *to, const union chunk *c)
{
	(void)to;
	ARRAY_ROOM(fed.chunk, fed.room, fed.count + 1);
	fed.chunk[fed.count++] = *c;
}

/* Forgets what was kept; the collector's own stream begins. */
static void fed_begin(u64 ticks, u64 large)
{
	struct gen own;

	fed.count = 0;
	gen_init(&own, 0, 0, 0, fed_keep, NULL);
	gen_session(&own, ticks, large);
	gen_flush(&own);
}

static struct session *fed_session(void)
{
	struct feed f = feed_new(NULL);
	u32 i;

	for (i = 0; i < fed.count; i++) {
		union chunk *c = merge_chunk(f.merge);

		*c = fed.chunk[i];
		merge_push(f.merge, c);
	}
	feed_end(&f);
	merge_free(f.merge);
	return f.session;
}

#endif
