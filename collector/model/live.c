/*
 * live.c - how sub-tables of live blocks grow.
 */
#include "live.h"
#include <sys/mman.h>

enum { FIRST_GROUPS = 4, HUGE_PAGE = 2 << 20 };

static size_t table_bytes(u32 groups)
{
	return (size_t)groups * LIVE_GROUP * (1 + sizeof(struct live_block));
}

static void *table_memory(size_t bytes)
{
	void *p;

	if (bytes < HUGE_PAGE)
		return must(aligned_alloc(64, (bytes + 63) & ~(size_t)63));
	p = must(aligned_alloc(HUGE_PAGE, (bytes + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1)));
	madvise(p, bytes, MADV_HUGEPAGE);
	return p;
}

static void free_table(struct live_table *t)
{
	free(t->tag);
}

static void init_table(struct live_table *t, u32 groups)
{
	u32 places = groups * LIVE_GROUP;

	t->groups = groups;
	t->tag = table_memory(table_bytes(groups));
	t->block = (struct live_block *)(t->tag + places);
	t->used = 0;
	t->limit = places / 16 * 13;
	memset(t->tag, TAG_EMPTY, places);
}

static void put_new(struct live_table *t, struct live_block b)
{
	u64 hash = live_hash(b.addr);
	u32 g = live_group(t, hash), vacant, place;

	while (!(vacant = live_vacant(t->tag + g * LIVE_GROUP)))
		g = (g + 1) & (t->groups - 1);
	place = g * LIVE_GROUP + (u32)__builtin_ctz(vacant);
	t->tag[place] = live_tag(hash);
	t->block[place] = b;
	t->used++;
}

static u32 blocks_in(const struct live_table *t)
{
	u32 i, n = 0;

	for (i = 0; i < t->groups * LIVE_GROUP; i++)
		n += !(t->tag[i] & 0x80);
	return n;
}

/* Twice as large, or the same again if it was deleted places that filled it. */
void live_grow(struct live_table *t)
{
	struct live_table old = *t;
	u32 i, places = old.groups * LIVE_GROUP;

	if (!old.tag) {
		init_table(t, FIRST_GROUPS);
		return;
	}
	init_table(t, blocks_in(&old) > places / 16 * 10 ? old.groups * 2 : old.groups);
	for (i = 0; i < places; i++)
		if (!(old.tag[i] & 0x80))
			put_new(t, old.block[i]);
	free_table(&old);
}

u64 live_count(const struct live *l)
{
	u64 n = 0;
	u32 i;

	for (i = 0; i < LIVE_TABLES; i++)
		n += blocks_in(&l->table[i]);
	return n;
}

u64 live_bytes_held(const struct live *l)
{
	u64 n = 0;
	u32 i;

	for (i = 0; i < LIVE_TABLES; i++)
		n += l->table[i].tag ? table_bytes(l->table[i].groups) : 0;
	return n;
}

void live_release(struct live *l)
{
	u32 i;

	for (i = 0; i < LIVE_TABLES; i++)
		if (l->table[i].tag)
			free_table(&l->table[i]);
	memset(l, 0, sizeof(*l));
}
