/*
 * stack.h - the number of the stack a hook was called from.
 *
 * Two levels: a hit in the context's cache (0.3 ns a frame, inline here), and a walk by CFI rules.
 *
 *   stack_cache.h   what is remembered of a stack
 *   stack.c         a stack that is not remembered: walk, name, remember
 *   stack_walk.c    from frame to frame, until a remembered stack is joined
 *   stack_name.c    (frame and all outside of it) -> number
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

u32 stack_not_expected(struct context *c, struct caller at, u64 t);
u32 stack_other(struct context *c, struct caller at, u64 t);     /* --stacks other than full */
void stack_start(struct context *c);            /* a context begins, or goes to a thread with another stack */
void stack_forget(struct context *c, u64 t);    /* code was unloaded: addresses mean something else */
void stack_forget_later(struct context *c);     /* chunks that named nodes were dropped, or there are very many of them */

static inline __attribute__((always_inline)) bool path_unchanged(const struct stack_cache *s, struct path p)
{
#define CHANGED(i) (*(const u64 *)slot[i].at ^ slot[i].value)
	while (p.slots) {
		const union arena_slot *slot = &s->arena[p.first], *end = slot + p.slots;

		for (; slot < end; slot += 4)
			if (CHANGED(0) | CHANGED(1) | CHANGED(2) | CHANGED(3))
				return false;
		p = path_link(s, p)->outside;
	}
#undef CHANGED
	return true;
}

static inline __attribute__((always_inline)) bool stack_is(const struct stack_cache *s, const struct stack_entry *e, struct caller at)
{
	return e->pc == at.pc && e->sp == at.sp && (!e->uses_bp || e->bp == at.bp) && path_unchanged(s, e->path);
}

static inline __attribute__((always_inline)) u32 stack_is_now(struct stack_cache *s, u32 number)
{
	const struct stack_entry *e = &s->entry[number];

	s->last = e->path;
	s->now = (u16)number;
	s->expected = e->next;
	__builtin_prefetch(&s->entry[e->next]);
	return e->node;
}

static inline __attribute__((always_inline)) u32 stack_lookup(struct context *c, struct caller at, u64 t)
{
	struct stack_cache *s = &c->stacks;

	if (unlikely(s->epoch != guest.epoch || !stack_is(s, &s->entry[s->expected], at)))
		return stack_not_expected(c, at, t);
	return stack_is_now(s, s->expected);
}

/* Before the real function is called: what the stack will be compared with is on its way meanwhile. */
static inline __attribute__((always_inline)) void stack_fetch(const struct context *c)
{
	const struct stack_cache *s = &c->stacks;
	const union arena_slot *slot = &s->arena[s->entry[s->expected].path.first];

	__builtin_prefetch(slot);
	__builtin_prefetch(slot + 4);
}

/* t is the stamp of the record that the stack is for: what has to be said before it must not be older than the collector
 * expects, nor newer than the record. */
static inline __attribute__((always_inline)) u32 stack_here(struct context *c, struct caller at, u64 t)
{
	return likely(guest.stacks == STACKS_FULL) ? stack_lookup(c, at, t) : stack_other(c, at, t);
}

#endif
