/*
 * stack.h - the number of the stack a hook was called from.
 *
 * Two levels: a hit in the context's cache (0.4 ns a frame, inline here), and a walk by CFI rules (stack.c, cfi.c).
 */
#ifndef STACK_H
#define STACK_H

#include "context.h"

/* Where a hook was called from. */
struct caller {
	u64 pc, sp, bp;             /* return address; stack and base pointer after the return */
};

/* To be used in the hook itself. */
#define CALLER()                                                                                       \
	({                                                                                             \
		const u64 *frame_ = __builtin_frame_address(0);                                        \
		(struct caller){ frame_[1], (u64)(frame_ + 2), frame_[0] };                            \
	})
#define FRAME() ((u64)__builtin_frame_address(0))

u32 stack_miss(struct context *c, struct caller at, u64 t, struct stack_entry *set);
u32 stack_other(struct context *c, struct caller at, u64 t);     /* --stacks other than full */
void stack_start(struct context *c);            /* a context begins, or goes to a thread with another stack */
void stack_forget(struct context *c, u64 t);    /* code was unloaded: addresses mean something else */
void stack_forget_later(struct context *c);     /* chunks that named nodes were dropped */

static inline struct stack_entry *stack_set(struct context *c, struct caller at)
{
	u64 h = (at.pc ^ at.sp * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;

	return c->stacks.entry[h >> 56];
}

static inline __attribute__((always_inline)) bool stack_unchanged(struct stack_cache *s, const struct stack_entry *e, u64 sp)
{
	const u32 *offset = stack_offsets(s, e);
	const u64 *value = stack_values(s, e);

#define CHANGED(i) (*(const u64 *)(sp + offset[i]) ^ value[i])
	for (u32 i = 0; i < e->slots; i += 4)   /* padded: the last slot is repeated */
		if (CHANGED(i) | CHANGED(i + 1) | CHANGED(i + 2) | CHANGED(i + 3))
			return false;
#undef CHANGED
	return true;
}

static inline __attribute__((always_inline)) u32 stack_lookup(struct context *c, struct caller at, u64 t)
{
	struct stack_cache *s = &c->stacks;
	struct stack_entry *set;

	if (unlikely(s->epoch != guest.epoch))
		stack_forget(c, t);
	set = stack_set(c, at);
	for (u32 i = 0; i < CACHE_WAYS; i++) {
		const struct stack_entry *e = &set[i];

		if (e->pc != at.pc || e->sp != at.sp || (e->uses_bp && e->bp != at.bp) || !stack_unchanged(s, e, at.sp))
			continue;
		if (s->last.data != e->data)
			s->last = *e;
		return e->node;
	}
	return stack_miss(c, at, t, set);
}

/* t is the stamp of the record that the stack is for: what has to be said before it must not be older than the collector
 * expects, nor newer than the record. */
static inline __attribute__((always_inline)) u32 stack_here(struct context *c, struct caller at, u64 t)
{
	return likely(guest.stacks == STACKS_FULL) ? stack_lookup(c, at, t) : stack_other(c, at, t);
}

#endif
