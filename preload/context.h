/*
 * context.h - one thread's place in mlprof: where its records go and what it knows of its stacks.
 *
 *   TLS { context, guard } --> context (private) --> slot (shared): busy word, ring of 16 chunks
 *
 * A context belongs to a slot, not to a thread: when a thread is gone, the next one takes over its slot
 * with all the stack frames already named. Contexts lie in memory that fork wipes (MADV_WIPEONFORK), so
 * that a child, however it was made, finds `chunk` NULL and starts afresh.
 */
#ifndef CONTEXT_H
#define CONTEXT_H

#include "guest.h"
#include "stack_cache.h"
#include "ticks.h"

struct context {
	union chunk *chunk;         /* being filled; NULL: not attached */
	u64 used;                   /* its head.used */
	u64 last;                   /* ticks of the last record */
	struct slot *slot;
	u32 nodes;                  /* node numbers given out so far */
	u32 index;                  /* of the slot */
	u64 stack_low, stack_high;  /* of the thread that owns it now */
	u64 stack_begin;            /* outermost frame: no code is called from beyond it */
	u64 since;                  /* ticks: when that thread got it */
	struct context *nested;     /* for signal handlers that interrupt a record being written */
	u32 lost;                   /* records dropped since the last chunk began */
	struct stack_cache stacks;
};

struct tls {
	struct context *context;
	u64 guard;                  /* frame address of the hook we are inside of, | WRITING; 0: outside */
	u32 nested;                 /* the nested context is in use */
	u32 refused;                /* no context was to be had: pass this many events before asking again */
	u32 api_depth;              /* wrappers of device APIs that we are inside of */
	u32 opencl_row;             /* what the outermost of them is meant for; see opencl.h */
	void *locked_work;          /* for bind_lock.c */
	u32 reading;                /* ld.so's list, there too */
};

enum { WRITING = 1 };               /* a record is half done; without it, a real function is at work */

extern __thread struct tls tls __attribute__((tls_model("initial-exec")));

/* What a hook holds while it is inside. `context` NULL: pass through. */
struct visit {
	struct context *context;
	u64 before;                 /* guard to put back */
};

struct visit context_enter_slow(u64 frame);
void context_leave_nested(u64 before);
void context_thread_ended(void);
void context_give_up(void);         /* this thread is not recorded any more; what it does is counted as lost */


/* The frame must be the hook's own: __builtin_frame_address(0) there. */
static inline struct visit context_enter(u64 frame)
{
	struct visit v = { tls.context, 0 };

	if (unlikely(tls.guard || !v.context || !v.context->chunk))
		return context_enter_slow(frame);
	tls.guard = frame;
	return v;
}

static inline void context_leave(struct visit v)
{
	if (unlikely(v.before))
		context_leave_nested(v.before);
	else
		tls.guard = 0;
}

/*
 * Between these two a stamp is taken and its record written. The collector must not take time to be past
 * the stamp before the record is there: it looks at `busy`. (x86 may let rdtsc pass the store; the
 * collector leaves 0.2 ms for that.)
 */
static inline void writing_begin(struct context *c)
{
	tls.guard |= WRITING;
	__atomic_store_n(&c->slot->head.busy, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void writing_end(struct context *c)
{
	__atomic_store_n(&c->slot->head.busy, 0, __ATOMIC_RELEASE);
	tls.guard &= ~(u64)WRITING;
}

#endif
