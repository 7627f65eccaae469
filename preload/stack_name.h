/*
 * stack_name.h - the numbers of stacks: (frame and all outside of it) -> node.
 */
#ifndef STACK_NAME_H
#define STACK_NAME_H

#include "context.h"

#define UNCHAINED 1             /* a return address whose outside is not known yet */

/* Hash of a frame and all outside of it. Computed without looking anything up, so that a stack that is known takes one
 * look into the table, however deep it is. Frame waits for frame here: five cycles each. Never 0 nor UNCHAINED. */
static inline u64 chain_of(u64 outside, u64 pc)
{
	u64 h = outside ^ pc * 0xd6e8feb86659fd93ull;

	return (h >> 29 | h << 35) * 0x9e3779b97f4a7c15ull | 2;
}

/* The frame at pc; all frames outside of it that have no number yet are named first. Those are among the `slots` slots
 * from `first` outwards in the arena, with their chains. */
u32 stack_name(struct context *c, u64 chain, u64 pc, u32 first, u32 slots);
void stack_names_forget(struct stack_cache *s);

#endif
