/*
 * note.h - what api_*.c files say: a block came, a block went, something happened.
 *
 * A hook looks like this:
 *
 *	struct visit v = context_enter(FRAME());
 *	if (unlikely(!v.context))
 *		return pass through;
 *	p = REAL(f)(...);
 *	if (p)
 *		note_alloc(v, p, size, CALLER());
 *	context_leave(v);
 */
#ifndef NOTE_H
#define NOTE_H

#include "buffer.h"
#include "hook.h"
#include "stack.h"

/* Inlined by force: the call and its ten words of arguments would cost 2 ns, which only malloc itself is worth. */
static inline __attribute__((always_inline)) void note_alloc_inline(struct visit v, const void *p, u64 size, struct caller at)
{
	struct context *c = v.context;
	u64 t;
	u32 node;

	writing_begin(c);
	t = ticks();                    /* right after the real call: a free of the same address was stamped before */
	node = stack_here(c, at, t);
	buffer_alloc(c, KIND_alloc, t, (u64)p, size, node);
	writing_end(c);
}

static __attribute__((noinline, unused)) void note_alloc(struct visit v, const void *p, u64 size, struct caller at)
{
	note_alloc_inline(v, p, size, at);
}

static inline void note_free(struct visit v, const void *p)
{
	struct context *c = v.context;

	writing_begin(c);
	buffer_free(c, KIND_free, ticks(), (u64)p);    /* before the real call: nobody else can own the address yet */
	writing_end(c);
}

/*
 * From here to note_move_*() time stands still for the collector at this stamp, though the real function is called
 * in between and its result is not known yet.
 */
static inline u64 note_move_begin(struct visit v)
{
	__atomic_store_n(&v.context->slot->head.busy, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return ticks_fenced();
}

/* The block moved, or was kept, and has another size now. */
static __attribute__((noinline, unused)) void note_move(struct visit v, u64 before, const void *from, const void *to, u64 size, struct caller at)
{
	struct context *c = v.context;
	u64 t = ticks();
	u32 node;

	writing_begin(c);
	node = stack_here(c, at, before);
	buffer_free(c, KIND_leave, before, (u64)from);
	buffer_alloc(c, KIND_enter, t, (u64)to, size, node);
	writing_end(c);
}

static inline void note_moved_away(struct visit v, u64 before, const void *from)
{
	writing_begin(v.context);
	buffer_free(v.context, KIND_free, before, (u64)from);
	writing_end(v.context);
}

static inline void note_not_moved(struct visit v)
{
	writing_end(v.context);
}

#endif
