/*
 * live.h - the table of live blocks: address -> (size, row), 17 bytes a place.
 *
 *   16 sub-tables by the top bits of the hash, each growing alone, so that no growth is a long stall
 *   sub-table:  tag[16] tag[16] ...      one byte a place: 7 bits of the hash, or EMPTY or DELETED
 *               block[16] block[16] ...  looked at only where the tag fits
 *
 * A value is size << 28 | row. Sizes that do not fit there are kept by whoever calls (LIVE_HUGE).
 */
#ifndef LIVE_H
#define LIVE_H

#include "../util/array.h"
#include <stdbool.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

enum { LIVE_TABLES = 16, LIVE_TABLE_BITS = 4, LIVE_GROUP = 16 };
enum { TAG_EMPTY = 0x80, TAG_DELETED = 0xfe };

struct live_block {
	u64 addr, value;
};

struct live_table {
	u8 *tag;                        /* NULL: nothing was ever put in */
	struct live_block *block;
	u32 groups;                     /* a power of two */
	u32 used, limit;                /* places that are not empty */
};

struct live {
	struct live_table table[LIVE_TABLES];
};

void live_release(struct live *l);
void live_grow(struct live_table *t);
u64 live_count(const struct live *l);
u64 live_bytes_held(const struct live *l);

static inline u64 live_hash(u64 addr)
{
	return (addr >> 3 ^ addr << 61) * 0x9e3779b97f4a7c15ull;
}

/* Low bits of the product depend on few bits of the address: tags come from its middle. */
static inline u8 live_tag(u64 hash)
{
	return hash >> 24 & 0x7f;
}

static inline struct live_table *live_table(struct live *l, u64 hash)
{
	return &l->table[hash >> (64 - LIVE_TABLE_BITS)];
}

static inline u32 live_group(const struct live_table *t, u64 hash)
{
	return (u32)(hash >> 32) >> 1 & (t->groups - 1);
}

/* Bit i is set where tag i of the group is `tag`. */
static inline u32 live_match(const u8 *group, u8 tag)
{
#ifdef __SSE2__
	__m128i g = _mm_loadu_si128((const __m128i *)group);

	return (u32)_mm_movemask_epi8(_mm_cmpeq_epi8(g, _mm_set1_epi8((char)tag)));
#else
	u32 i, bits = 0;

	for (i = 0; i < LIVE_GROUP; i++)
		bits |= (u32)(group[i] == tag) << i;
	return bits;
#endif
}

/* Bit i is set where place i is empty or deleted. */
static inline u32 live_vacant(const u8 *group)
{
#ifdef __SSE2__
	return (u32)_mm_movemask_epi8(_mm_loadu_si128((const __m128i *)group));
#else
	u32 i, bits = 0;

	for (i = 0; i < LIVE_GROUP; i++)
		bits |= (u32)(group[i] >> 7) << i;
	return bits;
#endif
}

/* Takes a block out. False: there is none. */
static inline bool live_take(struct live *l, u64 addr, u64 *value)
{
	u64 hash = live_hash(addr);
	struct live_table *t = live_table(l, hash);
	u32 g;

	if (unlikely(!t->tag))
		return false;
	for (g = live_group(t, hash);; g = (g + 1) & (t->groups - 1)) {
		u8 *group = t->tag + g * LIVE_GROUP;
		u32 hits = live_match(group, live_tag(hash)), empty = live_match(group, TAG_EMPTY);

		for (; hits; hits &= hits - 1) {
			u32 i = (u32)__builtin_ctz(hits);
			struct live_block *b = &t->block[g * LIVE_GROUP + i];

			if (unlikely(b->addr != addr))
				continue;
			*value = b->value;
			group[i] = empty ? TAG_EMPTY : TAG_DELETED;
			t->used -= empty != 0;
			return true;
		}
		if (empty)
			return false;
	}
}

/* Puts a block in. True: one was there at this address, and *value gets what it was. */
static inline bool live_put(struct live *l, u64 addr, u64 *value)
{
	u64 hash = live_hash(addr), old;
	struct live_table *t = live_table(l, hash);
	u32 g, place = UINT32_MAX;

	if (unlikely(t->used >= t->limit))
		live_grow(t);
	for (g = live_group(t, hash);; g = (g + 1) & (t->groups - 1)) {
		u8 *group = t->tag + g * LIVE_GROUP;
		u32 hits = live_match(group, live_tag(hash)), vacant = live_vacant(group);

		for (; unlikely(hits); hits &= hits - 1) {
			struct live_block *b = &t->block[g * LIVE_GROUP + (u32)__builtin_ctz(hits)];

			if (b->addr != addr)
				continue;
			old = b->value;
			b->value = *value;
			*value = old;
			return true;
		}
		if (vacant && place == UINT32_MAX)
			place = g * LIVE_GROUP + (u32)__builtin_ctz(vacant);
		if (likely(live_match(group, TAG_EMPTY)))
			break;
	}
	t->used += t->tag[place] == TAG_EMPTY;
	t->tag[place] = live_tag(hash);
	t->block[place] = (struct live_block) { addr, *value };
	return false;
}

/* For those who know early which address will be asked for. */
static inline void live_fetch_tags(struct live *l, u64 addr)
{
	u64 hash = live_hash(addr);
	struct live_table *t = live_table(l, hash);

	if (t->tag)
		__builtin_prefetch(t->tag + live_group(t, hash) * LIVE_GROUP, 1);
}

static inline void live_fetch_block(struct live *l, u64 addr, bool put)
{
	u64 hash = live_hash(addr);
	struct live_table *t = live_table(l, hash);
	u32 g, bits;

	if (!t->tag)
		return;
	g = live_group(t, hash) * LIVE_GROUP;
	bits = put ? live_vacant(t->tag + g) : live_match(t->tag + g, live_tag(hash));
	__builtin_prefetch(&t->block[g + ((u32)__builtin_ctz(bits | 0x10000) & 15)], 1);
}

#endif
