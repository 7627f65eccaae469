/*
 * context.c - contexts come and go: slots are taken, handed on, and nested for signal handlers.
 */
#include "context.h"
#include "buffer.h"
#include "hook.h"
#include "process.h"
#include "slots.h"
#include "stack.h"
#include "text.h"
#include <errno.h>
#include <string.h>

__thread struct tls tls __attribute__((tls_model("initial-exec")));

enum { ASK_AGAIN = 4096 };

extern void *__libc_stack_end;          /* of ld.so: where the main thread's stack began */

static void main_stack_bounds(struct context *c)
{
	struct rlimit limit;
	u64 size = 8 << 20;

	if (sys_getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < 1ull << 36)
		size = limit.rlim_cur;
	c->stack_begin = (u64)__libc_stack_end;
	c->stack_high = (c->stack_begin + 4095) & ~4095ull;
	c->stack_low = c->stack_high > size ? c->stack_high - size : 4096;
}

/* pthread_getattr_np allocates, which passes through, as we are inside. */
static void thread_stack_bounds(struct context *c)
{
	pthread_attr_t attributes;
	void *low = NULL;
	size_t size = 0;
	int before = errno;

	c->stack_low = c->stack_high = c->stack_begin = 0;
	if (PASS(pthread_getattr_np)(pthread_self(), &attributes) == 0) {
		if (pthread_attr_getstack(&attributes, &low, &size) == 0) {
			c->stack_low = (u64)low;
			c->stack_high = c->stack_begin = (u64)low + size;
		}
		pthread_attr_destroy(&attributes);
	}
	errno = before;
}

/* A signal handler's thread is the one it interrupted, which may hold the lock that pthread_getattr_np takes. */
static void same_stack_bounds(struct context *c, const struct context *outer)
{
	c->stack_low = outer->stack_low;
	c->stack_high = outer->stack_high;
	c->stack_begin = outer->stack_begin;
}

/* A thread takes over the context of a slot. `fresh`: the slot was never used before. */
static void settle(struct context *c, u32 tid, bool fresh)
{
	u64 high = c->stack_high, t;
	char name[16] = "";

	c->slot->head.busy = 1;
	t = c->since = ticks();
	if (tls.nested)
		same_stack_bounds(c, tls.context);
	else if (tid == process_pid())
		main_stack_bounds(c);
	else
		thread_stack_bounds(c);
	if (fresh || high != c->stack_high)
		stack_start(c);
	if (fresh)
		c->last = t;
	sys(SYS_prctl, PR_GET_NAME, name, 0);
	c->slot->head.ended = 0;
	if (fresh) {
		buffer_begin(c);
		if (c->index == 0)
			process_hello_records(c, t);
	}
	EMIT(c, t, thread, FIELDS(.tid = tid), name, text_length(name));
	if (fresh)
		buffer_send(c);
	c->slot->head.busy = 0;
}

static struct context *attach(void)
{
	u32 tid = (u32)sys_gettid();
	bool fresh;
	struct context *c = slots_take(tid, &fresh);

	if (!c)
		return NULL;
	settle(c, tid, fresh);
	slots_watch_thread_end(c);
	return c;
}

/*
 * The hook that set the guard may be gone without having come back: longjmp or an exception left it. Then its
 * frame lies below ours on the same stack. On different stacks (signal stack, fibers) nothing can be told.
 */
static bool guard_is_stale(u64 frame)
{
	const struct context *c = tls.context;
	u64 owner = tls.guard & ~(u64)WRITING;

	return c && frame > owner && owner >= c->stack_low && frame < c->stack_high;
}

static void drop_stale_guard(void)
{
	tls.guard = 0;
	tls.nested = 0;
	if (tls.context->slot)
		tls.context->slot->head.busy = 0;
}

/* A signal handler came while a record was being written: it gets a context of its own. */
static struct visit enter_nested(u64 frame)
{
	struct visit v = { NULL, tls.guard };
	struct context *outer = tls.context;

	if (!outer || !outer->chunk)
		return v;
	if (tls.nested) {
		outer->lost++;
		outer->slot->head.lost++;
		return v;
	}
	tls.nested = 1;
	if (!outer->nested || !outer->nested->chunk)
		outer->nested = attach();
	if (!outer->nested) {
		tls.nested = 0;
		return v;
	}
	tls.guard = frame;
	v.context = outer->nested;
	return v;
}

void context_leave_nested(u64 before)
{
	tls.guard = before;
	tls.nested = 0;
}

/* This thread's context, made if need be. Where there is no memory for one, asking each time would cost too much. */
static struct context *own_context(void)
{
	if (tls.context && tls.context->chunk)
		return tls.context;
	if (tls.refused) {
		tls.refused--;
		__atomic_add_fetch(&image->segment[0]->head.lost, 1, __ATOMIC_RELAXED);
		return NULL;
	}
	tls.context = attach();
	if (!tls.context)
		tls.refused = ASK_AGAIN;
	return tls.context;
}

struct visit context_enter_slow(u64 frame)
{
	struct visit v = { NULL, 0 };

	if (tls.guard && guard_is_stale(frame))
		drop_stale_guard();
	if (tls.guard & WRITING)
		return enter_nested(frame);
	if (tls.guard)
		return v;
	tls.guard = frame;
	if (process_ready())
		v.context = own_context();
	if (!v.context)
		tls.guard = 0;
	return v;
}

void context_thread_ended(void)
{
	struct visit v = context_enter(FRAME());
	char name[16] = "";

	if (!v.context)
		return;
	writing_begin(v.context);
	sys(SYS_prctl, PR_GET_NAME, name, 0);
	EMIT(v.context, ticks(), thread_end, FIELDS(.tid = v.context->slot->head.tid), name, text_length(name));
	v.context->slot->head.ended = 1;
	if (v.context->nested)
		v.context->nested->slot->head.ended = 1;
	writing_end(v.context);
	context_leave(v);
}

void context_give_up(void)
{
	tls.context = NULL;
	tls.refused = UINT32_MAX;
}
