/*
 * pool.h - many small pieces of memory that are given back all at once.
 */
#ifndef POOL_H
#define POOL_H

#include <stddef.h>

struct pool {
	struct pool_block *blocks;
	char *at;
	size_t left;
};

void *pool_copy(struct pool *p, const void *bytes, size_t count);         /* at a multiple of 8; NULL: of nothing */
char *pool_text(struct pool *p, const char *text, size_t length);       /* ended by NUL */
void pool_release(struct pool *p);

#endif
