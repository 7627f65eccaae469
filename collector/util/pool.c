/* pool.c - see pool.h. */
#include "pool.h"
#include "array.h"

/* 0: each piece is a block of its own, so that AddressSanitizer knows where it ends. */
#ifndef POOL_BLOCK
#define POOL_BLOCK 65536
#endif

enum { STEP = POOL_BLOCK ? sizeof(u64) : 1 };

struct pool_block {
	struct pool_block *next;
	u64 bytes[];
};

static void add_block(struct pool *p, size_t bytes)
{
	struct pool_block *b = must(malloc(sizeof(*b) + bytes));

	b->next = p->blocks;
	p->blocks = b;
	p->at = (char *)b->bytes;
	p->left = bytes;
}

static char *take(struct pool *p, size_t count)
{
	size_t whole = (count + STEP - 1) / STEP * STEP;

	if (whole > p->left)
		add_block(p, whole > POOL_BLOCK ? whole : POOL_BLOCK);
	p->at += whole;
	p->left -= whole;
	return p->at - whole;
}

void *pool_copy(struct pool *p, const void *bytes, size_t count)
{
	return count ? memcpy(take(p, count), bytes, count) : NULL;
}

char *pool_text(struct pool *p, const char *text, size_t length)
{
	char *copy = take(p, length + 1);

	memcpy(copy, text, length);
	copy[length] = 0;
	return copy;
}

void pool_release(struct pool *p)
{
	while (p->blocks) {
		struct pool_block *b = p->blocks;

		p->blocks = b->next;
		free(b);
	}
	*p = (struct pool) { 0 };
}
