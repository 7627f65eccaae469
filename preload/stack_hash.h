/*
 * stack_hash.h - hash of a frame and all outside of it: a number that can be added up from either end.
 *
 *   chain of frame i = weight of frame i + BASE * chain of frame i+1         modulo the prime 2^61 - 1
 *
 * A walk goes outwards, so it adds weight * BASE^i: that waits for nothing, and runs beside the walk's own loads. Where it
 * meets a known stack, it adds that one's chain times the power it has come to. From the outside inwards, the rule above
 * gives the same; and from the whole outwards, taking off frame by frame.
 */
#ifndef STACK_HASH_H
#define STACK_HASH_H

#include "cfi.h"
#include "stack_cache.h"

#define UNCHAINED 1ull                  /* a return address whose chain has not been worked out */
#define HASH_PRIME ((1ull << 61) - 1)
#define HASH_BASE 0x1b8735939e3779b9ull
#define HASH_BASE_INVERSE 0x14b482a044bbfed9ull        /* HASH_BASE * this = 1 modulo the prime */

extern u64 hash_power[STACK_SLOTS];     /* BASE^i */
void stack_hash_start(void);

typedef unsigned __int128 hash_sum;

/* 52 bits, so that the sum of all frames' weights, each times a power of 61 bits, fits. */
static inline u64 hash_weight_of_mixed(u64 mixed) { return mixed >> 12; }
static inline u64 hash_weight(u64 pc) { return hash_weight_of_mixed(cfi_mixed(pc)); }

/* The one form of a chain: below the prime + 2, and neither 0 nor UNCHAINED. */
static inline u64 hash_settle(hash_sum x)
{
	u64 h;

	x = (x & HASH_PRIME) + (x >> 61);
	h = (u64)(x & HASH_PRIME) + (u64)(x >> 61);
	h = h >= HASH_PRIME ? h - HASH_PRIME : h;
	return h < 2 ? h + HASH_PRIME : h;
}

/* outside 0: there is nothing outside */
static inline u64 chain_of(u64 outside, u64 pc)
{
	return hash_settle((hash_sum)outside * HASH_BASE + hash_weight(pc));
}

/* The way back: the chain of what is outside of the frame at pc, that has this chain. There must be something outside. */
static inline u64 chain_outside(u64 chain, u64 pc)
{
	return hash_settle((hash_sum)(chain + HASH_PRIME - hash_weight(pc)) * HASH_BASE_INVERSE);
}

/* What a walk has added up. */
struct stack_hash {
	hash_sum sum;
	u32 frames;
};

static inline void hash_add(struct stack_hash *h, u64 pc)
{
	h->sum += (hash_sum)hash_weight(pc) * hash_power[h->frames++];
}

/* The frame added last, at pc, turns out to have this chain. */
static inline void hash_join(struct stack_hash *h, u64 pc, u64 chain)
{
	h->sum += (hash_sum)(chain + HASH_PRIME - hash_weight(pc)) * hash_power[h->frames - 1];
}

#endif
