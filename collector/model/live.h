/*
 * live.h - the table of live blocks: address -> (size, row), 17 bytes a place.
 *
 *   16 sub-tables by the top bits of the hash, each growing alone, so that no growth is a long stall
 *   sub-table:  tag[15] passed, tag[15] passed, ...   one byte a place: 7 bits of the hash; the eighth: it is empty
 *               block[16], block[16], ...             looked at only where the tag fits; the 16th is not used
 *
 * A block whose group is full goes to the next one that is not, and is counted in `passed` of all those it went by. So
 * where nobody passed, a group says by itself whether a block is there, and a place that is left is empty again.
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

enum { LIVE_TABLES = 16, LIVE_TABLE_BITS = 4, LIVE_GROUP = 16, LIVE_PASSED = 15 };
enum { TAG_EMPTY = 0x80, NOBODY_PASSED = 0x80 };

struct live_block {
	u64 addr, value;
};

struct live_table {
	u8 *tag;                        /* NULL: nothing was ever put in */
	struct live_block *block;
	u32 mask;                       /* of the number of a group's first place; groups are a power of two */
	u32 away, limit;                /* blocks that are not in their own group; one more makes the table grow */
};

struct live {
	struct live_table table[LIVE_TABLES];
};

/* Takes a block out. False: there is none. */
bool live_take(struct live *l, u64 addr, u64 *value);
/* Puts a block in. True: one was there at this address, and *value gets what it was. */
bool live_put(struct live *l, u64 addr, u64 *value);
void live_release(struct live *l);
u64 live_count(const struct live *l);
u64 live_bytes_held(const struct live *l);

static inline u64 live_hash(u64 addr)
{
	return (addr >> 3 | addr << 61) * 0x9e3779b97f4a7c15ull;
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

/* First place of the block's own group. */
static inline u32 live_group(const struct live_table *t, u64 hash)
{
	return (u32)(hash >> 28) & t->mask;
}

/* Bit i is set where byte i of the group is `tag`. */
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

/* Bit i is set where place i is empty, bit 15 where nobody passed. */
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

/* a or b, without a branch. */
static inline u64 live_choose(bool first, u64 a, u64 b)
{
	return b ^ ((a ^ b) & -(u64)first);
}

/*
 * Takes a block out (`leaves`; *value is 0 before) or puts one in, without a branch between the two: their mix is random. False: nothing was
 * done, because more than the block's own group has to be looked at, or its value is `odd` or above, or all is not as it
 * should be.
 */
static inline bool live_turn(struct live *l, u64 addr, bool leaves, u64 *value, u64 odd)
{
	u64 hash = live_hash(addr), now;
	struct live_table *t = live_table(l, hash);
	u32 group = live_group(t, hash), same, vacant, i;
	struct live_block *b;

	if (unlikely(!t->tag))
		return false;
	same = live_match(t->tag + group, live_tag(hash));
	vacant = live_vacant(t->tag + group);
	vacant &= (u32)leaves - 1;
	if (unlikely(((~vacant & 1 << LIVE_PASSED) | same) & ((u32)leaves - 1)))
		return false;
	i = (u32)__builtin_ctz(same | vacant | 1 << LIVE_PASSED);
	b = &t->block[group + i];
	if (unlikely(i == LIVE_PASSED || (b->addr ^ addr) & -(u64)leaves))
		return false;
	now = (b->value & -(u64)leaves) | *value;
	if (unlikely(now >= odd))
		return false;
	*value = now;
	*b = (struct live_block) { addr, *value };
	t->tag[group + i] = live_tag(hash) | (u8)(leaves * TAG_EMPTY);
	return true;
}

/* No block is at this address. False: there may be one. */
static inline bool live_lacks(struct live *l, u64 addr)
{
	u64 hash = live_hash(addr);
	const struct live_table *t = live_table(l, hash);
	const u8 *group;

	if (unlikely(!t->tag))
		return true;
	group = t->tag + live_group(t, hash);
	return group[LIVE_PASSED] == NOBODY_PASSED && !live_match(group, live_tag(hash));
}

/* For those who know even earlier: what live_fetch_block() looks at. */
static inline __attribute__((always_inline)) void live_fetch_group(struct live *l, u64 addr)
{
	u64 hash = live_hash(addr);
	struct live_table *t = live_table(l, hash);

	if (likely(t->tag))
		__builtin_prefetch(t->tag + live_group(t, hash), 1);
}

/* For those who know early which address will be asked for. Inlined at any price: gcc 12 drops a function that
 * only fetches, as one that does nothing. */
static inline __attribute__((always_inline)) void live_fetch_block(struct live *l, u64 addr, bool leaves)
{
	u64 hash = live_hash(addr);
	struct live_table *t = live_table(l, hash);
	u32 group = live_group(t, hash), fits;

	if (unlikely(!t->tag))
		return;
	fits = (u32)live_choose(leaves, live_match(t->tag + group, live_tag(hash)), live_vacant(t->tag + group));
	__builtin_prefetch(&t->block[group + (u32)__builtin_ctz(fits | 1 << LIVE_PASSED)], 1);
}

#endif
