/*
 * live.c - what live_turn() leaves to others: blocks away from their group, and growth.
 */
#include "live.h"
#include "util/heap.h"

enum {
	FIRST_GROUPS = 4,
	GROUPS_A_BLOCK_AWAY = 8,        /* the table grows when there is more than one away in so many groups, ... */
	WELL_FILLED = 9,                /* ... if so many blocks are in a group: else it would be too large for them */
	PASSED_MANY = 0x7f,             /* nobody knows how many */
};

#define NO_PLACE UINT32_MAX

static u32 groups_of(const struct live_table *t)
{
	return t->tag ? t->mask / LIVE_GROUP + 1 : 0;
}

static size_t table_bytes(u32 groups)
{
	return (size_t)groups * LIVE_GROUP * (1 + sizeof(struct live_block));
}

static void free_table(struct live_table *t)
{
	free(t->tag);
}

static void init_table(struct live_table *t, u32 groups)
{
	u32 places = groups * LIVE_GROUP;

	t->tag = heap_table(table_bytes(groups));
	t->block = (struct live_block *)(t->tag + places);
	t->mask = places - LIVE_GROUP;
	t->away = 0;
	t->limit = groups / GROUPS_A_BLOCK_AWAY + 1;
	memset(t->tag, TAG_EMPTY, places);      /* and NOBODY_PASSED */
}

/* ---- places -------------------------------------------------------------------------- */

static u32 next_group(const struct live_table *t, u32 group)
{
	return (group + LIVE_GROUP) & t->mask;
}

static u32 vacant_in(const struct live_table *t, u32 group)
{
	return live_vacant(t->tag + group) & ~(1u << LIVE_PASSED);
}

static void pass(u8 *passed, int by)
{
	int n = *passed == NOBODY_PASSED ? 0 : *passed;

	if (n == PASSED_MANY)
		return;
	n += by;
	*passed = n ? (u8)n : NOBODY_PASSED;
}

/* A block goes from its own group to another, or comes back. */
static void pass_by(struct live_table *t, u32 group, u32 to, int by)
{
	for (; group != to; group = next_group(t, group))
		pass(&t->tag[group + LIVE_PASSED], by);
}

static u32 find(const struct live_table *t, u64 hash, u64 addr)
{
	u32 group = live_group(t, hash), left, hits;

	for (left = groups_of(t); left; left--) {
		hits = live_match(t->tag + group, live_tag(hash)) & ~(1u << LIVE_PASSED);
		for (; hits; hits &= hits - 1) {
			u32 place = group + (u32)__builtin_ctz(hits);

			if (t->block[place].addr == addr)
				return place;
		}
		if (t->tag[group + LIVE_PASSED] == NOBODY_PASSED)
			break;
		group = next_group(t, group);
	}
	return NO_PLACE;
}

/* The first group from here on that has a vacant place. */
static u32 find_vacant(const struct live_table *t, u32 group)
{
	u32 left;

	for (left = groups_of(t); left; left--) {
		if (vacant_in(t, group))
			return group;
		group = next_group(t, group);
	}
	return NO_PLACE;
}

/* ---- growth -------------------------------------------------------------------------- */

static void grow(struct live_table *t);

static void add(struct live_table *t, struct live_block b)
{
	u64 hash = live_hash(b.addr);
	u32 own = live_group(t, hash), group = find_vacant(t, own), place;

	while (group == NO_PLACE || (group != own && t->away >= t->limit)) {
		grow(t);
		own = live_group(t, hash);
		group = find_vacant(t, own);
	}
	t->away += group != own;
	pass_by(t, own, group, 1);
	place = group + (u32)__builtin_ctz(vacant_in(t, group));
	t->tag[place] = live_tag(hash);
	t->block[place] = b;
}

static u32 blocks_in(const struct live_table *t)
{
	u32 group, n = 0;

	for (group = 0; group < groups_of(t) * LIVE_GROUP; group += LIVE_GROUP)
		n += LIVE_GROUP - 1 - (u32)__builtin_popcount(vacant_in(t, group));
	return n;
}

/* Twice as large, unless its blocks are few and only lie badly. */
static void grow(struct live_table *t)
{
	struct live_table old = *t;
	u32 groups = groups_of(t), i;

	if (groups && blocks_in(t) < groups * WELL_FILLED) {
		t->limit *= 2;
		return;
	}
	init_table(t, groups ? groups * 2 : FIRST_GROUPS);
	for (i = 0; i < groups * LIVE_GROUP; i++)
		if (i % LIVE_GROUP != LIVE_PASSED && !(old.tag[i] & TAG_EMPTY))
			add(t, old.block[i]);
	free_table(&old);
}

/* ---- the whole ----------------------------------------------------------------------- */

bool live_take(struct live *l, u64 addr, u64 *value)
{
	u64 hash = live_hash(addr);
	struct live_table *t = live_table(l, hash);
	u32 place = find(t, hash, addr), own = live_group(t, hash), group = place & ~(LIVE_GROUP - 1u);

	if (place == NO_PLACE)
		return false;
	*value = t->block[place].value;
	t->tag[place] = TAG_EMPTY;
	t->away -= group != own;
	pass_by(t, own, group, -1);
	return true;
}

bool live_put(struct live *l, u64 addr, u64 *value)
{
	u64 hash = live_hash(addr), old;
	struct live_table *t = live_table(l, hash);
	u32 place = find(t, hash, addr);

	if (place == NO_PLACE) {
		add(t, (struct live_block) { addr, *value });
		return false;
	}
	old = t->block[place].value;
	t->block[place].value = *value;
	*value = old;
	return true;
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
		n += table_bytes(groups_of(&l->table[i]));
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
