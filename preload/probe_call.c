/*
 * probe_call.c - a probed call: at entry a stamp and values, at exit one record.
 *
 * Nothing here is held over the real call: what it does is recorded as if we were not there. Between entry and exit libc is
 * not called, except where a thread or a forked child is met for the first time; then all vector registers are kept.
 */
#include "probe.h"
#include "buffer.h"
#include "elf_image.h"
#include "slots.h"
#include "stack.h"
#include <dlfcn.h>
#include <errno.h>

/* ---- entry ------------------------------------------------------------------------------- */

enum { COUNTED_MAX = 8192 };             /* words; with more a call goes its own way, unseen: the number may be none */

/* Begins what has to begin. 0: we are inside of our own code, or nothing is recorded. */
static u64 make_ready(void *frame)
{
	struct visit v = context_enter_slow((u64)frame);

	if (v.context)
		context_leave(v);
	return v.context != NULL;
}

/* Of more than a page. */
static __attribute__((noinline)) u32 readable_pages(const struct context *c, const struct probe_frame *f, u32 words)
{
	u64 at = (u64)f->stack, end = at + 8 * words, page;

	if (at >= c->stack_low && at < c->stack_high)
		return end <= c->stack_high ? words : (u32)(c->stack_high - at) / 8;
	for (page = (at + 4095) & ~4095ull; page < end; page += 4096)   /* a fiber's or a signal's: the kernel knows */
		if (!sys_readable((const void *)page))
			return (u32)(page - at) / 8;
	return words;
}

/* How many of these words of the caller's stack are there: it may end before. Mostly all lie in one page. */
static inline u32 readable_words(const struct context *c, const struct probe_frame *f, u32 words)
{
	u64 at = (u64)f->stack;

	if (likely((at ^ (at + 8 * words - 1)) < 4096) || !words)
		return words;
	return readable_pages(c, f, words);
}

/* A variadic call says itself how many there are. */
static __attribute__((noinline)) u32 counted_words(const struct probe_rule *r, const struct probe_frame *f)
{
	u32 words = (u32)f->reg[r->stack_from - 1];

	return words > COUNTED_MAX ? words : words > r->stack ? (words + 3) & ~3u : r->stack;
}

static void finish(struct probe_frame *f, u32 left);

/* The program did not call it: its errno stays. */
static u64 ask(void *unless)
{
	int kept = errno;
	bool otherwise = ((int (*)(void))unless)() != 0;

	errno = kept;
	return otherwise;
}

static bool is_of_no_interest(const struct probe_site *s)
{
	return s->rule->flags & PROBE_UNLESS && s->unless && probe_keeping_vectors(ask, (void *)s->unless);
}

i64 probe_enter(struct probe_frame *f)
{
	const struct probe_rule *r = f->site->rule;
	struct context *c = tls.context;
	u32 words = likely(!r->stack_from) ? r->stack : counted_words(r, f);

	if (unlikely(words > COUNTED_MAX)) {
		if (c && c->chunk)
			c->slot->head.lost++;
		return -1;
	}
	if (unlikely(r->flags & (PROBE_BUILTIN | PROBE_UNLESS))) {
		if (r->flags & PROBE_BUILTIN)
			return builtin_enter(f) ? 0 : -1;       /* none of them has arguments on the stack */
		if (is_of_no_interest(f->site))
			return -1;
	}
	if (unlikely(tls.guard || !c || !c->chunk)) {
		if (!probe_keeping_vectors(make_ready, f))
			return -1;
		c = tls.context;
	}
	c->slot->head.probe_enters++;
	f->words = (u16)readable_words(c, f, words);
	f->used = f->bad = 0;
	if (r->entry)
		probe_fetch(f, 0, r->entry);
	f->begin = ticks();
	if (unlikely(r->flags & PROBE_ENTRY)) {
		finish(f, 0);
		return -1;
	}
	return f->words;
}

/* ---- exit -------------------------------------------------------------------------------- */

static u64 enter_slowly(void *visit)
{
	struct visit *v = visit;

	*v = context_enter_slow(v->before);
	return 0;
}

static __attribute__((noinline)) struct visit enter_keeping_vectors(const struct probe_frame *f)
{
	struct visit v = { NULL, (u64)f };

	probe_keeping_vectors(enter_slowly, &v);
	if (v.context)
		writing_begin(v.context);
	return v;
}

/* As context_enter(), but there is no moment in which a signal's own probes would have to pass through. */
static inline struct visit enter(const struct probe_frame *f)
{
	struct context *c = tls.context;

	if (unlikely(tls.guard || !c || !c->chunk))
		return enter_keeping_vectors(f);
	tls.guard = (u64)f | WRITING;
	__atomic_store_n(&c->slot->head.busy, 1, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	return (struct visit){ c, 0 };
}

static inline void leave(struct visit v)
{
	__atomic_store_n(&v.context->slot->head.busy, 0, __ATOMIC_RELEASE);
	context_leave(v);
}

static inline bool is_short(const struct probe_rule *r, const struct probe_frame *f, u64 t)
{
	return unlikely(r->min_ns) && t - f->begin < r->min_ns * guest.control->ticks_per_ms / 1000000;
}

static __attribute__((noinline)) u32 stack_of(struct context *c, const struct probe_frame *f, u64 t)
{
	return stack_here(c, (struct caller){ f->pc, (u64)f->stack, f->rbp }, t);
}

/* Where the chunk is full, or the last record long ago. */
static __attribute__((noinline)) void record_slowly(struct context *c, const struct probe_frame *f, u64 t, u64 site, u32 node)
{
	struct rec_probe r = { .begin = f->begin, .site = site, .node = node };

	buffer_event(c, EVENT_probe, t, &r, sizeof r, (const char *)probe_values(f), f->used);
}

static inline __attribute__((always_inline)) void record(struct context *c, const struct probe_rule *rule, struct probe_frame *f, u64 t, u32 left)
{
	struct probe_site *s = f->site;
	u32 used = f->used, words = 3 + (used + 7) / 8, node = 0;
	u64 site = PROBE_WORD(s->id, left, f->bad);
	u64 *body, *end;

	if (unlikely(s->told != image->born))
		probe_tell(c, s, t);
	if (rule->flags & PROBE_CALLSTACK && f->pc)
		node = stack_of(c, f, t);
	if (unlikely(t - c->last >= EVENT_DT_LIMIT || !buffer_has_room(c, words + 1))) {
		record_slowly(c, f, t, site, node);
		return;
	}
	end = buffer_down(c) + 1;
	body = end - words;
	if (used) {                     /* two words at a time from the end on, and maybe one that body[2] replaces */
		const u64 *from = probe_values(f) + (words - 3);

		for (u64 *to = end; to > body + 3; to -= 2, from -= 2) {
			to[-1] = from[-1];
			to[-2] = from[-2];
		}
		end[-1] &= UINT64_MAX >> (8 * (-used & 7));     /* what lies behind the last value is of no interest */
	}
	body[0] = f->begin;
	body[1] = site;
	body[2] = node;
	*buffer_up(c) = KIND_event | (u64)EVENT_probe << 3 | (u64)used << 11 | (t - c->last) << EVENT_DT_SHIFT;
	c->last = t;
	buffer_publish(c, USED_STEP(1, words));
}

/* A call that began before this image did is its parent's: that one records it. */
static inline __attribute__((always_inline)) void finish_inline(struct probe_frame *f, u32 left)
{
	const struct probe_rule *r = f->site->rule;
	struct visit v = enter(f);
	struct context *c = v.context;
	u64 t;

	if (unlikely(!c)) {
		if (tls.context && tls.context->chunk)
			tls.context->slot->head.probe_exits++;
		return;
	}
	t = r->flags & PROBE_ENTRY ? f->begin : ticks();
	if (likely(f->begin >= image->born)) {
		c->slot->head.probe_exits++;
		if (is_short(r, f, t)) {
			c->slot->head.probe_short++;
		} else {
			if (r->all > r->entry)
				probe_fetch(f, r->entry, r->all);
			record(c, r, f, t, left);
		}
	}
	leave(v);
}

static __attribute__((noinline)) void finish(struct probe_frame *f, u32 left) { finish_inline(f, left); }

/* A call that finds a table or a function is not recorded: what is called through them is. */
static __attribute__((noinline)) void finish_table(struct probe_frame *f)
{
	const struct probe_rule *r = f->site->rule;
	struct context *c = tls.context;

	if (tls.guard || !c || !c->chunk || f->begin < image->born)
		return;
	c->slot->head.probe_exits++;
	probe_fetch(f, r->entry, r->all);
	if (r->flags & PROBE_TABLE)
		probe_table(f);
	else
		probe_getter(f);
}

void probe_exit(struct probe_frame *f)
{
	u32 flags = f->site->rule->flags;

	if (likely(!(flags & (PROBE_TABLE | PROBE_GETTER | PROBE_BUILTIN))))
		finish_inline(f, 0);
	else if (flags & (PROBE_TABLE | PROBE_GETTER))
		finish_table(f);
	else
		builtin_exit(f);
}

/* What happened is shown as a call, that no trampoline saw: nobody called it. */
void probe_note(struct probe_site *s, u64 begin, const u64 *arguments, u32 n)
{
	struct { u64 values[(PROBE_VALUES_MAX + 48) / 8]; struct probe_frame frame; } room;
	struct probe_frame *f = &room.frame;

	static_assert(offsetof(__typeof__(room), frame) == sizeof room.values, "values lie right below the frame");
	f->site = s;
	f->rbp = f->pc = 0;
	for (u32 i = 0; i < 6; i++)
		f->reg[i] = i < n ? arguments[i] : 0;
	if (probe_enter(f) < 0)
		return;
	f->begin = begin;
	finish(f, 0);
}

/* ---- exceptions and cancellation ------------------------------------------------------------ */

/*
 * The unwinder comes by. Which one that is (libgcc_s, another) is seen from where it calls us; it is the one to ask
 * for the register that leads to the frame. A call left this way has no results.
 */
int probe_personality(int version, int actions, u64 class, void *exception, void *context)
{
	enum { CLEANUP_PHASE = 2, CONTINUE_UNWIND = 8 };
	u64 (*get_register)(void *, int);
	struct dl_find_object unwinder;
	struct probe_frame *f;
	struct elf_image e;

	(void)version, (void)class, (void)exception;
	if (!(actions & CLEANUP_PHASE) || _dl_find_object(__builtin_return_address(0), &unwinder) != 0 ||
	    !elf_open(&e, unwinder.dlfo_link_map) || !(get_register = (__typeof__(get_register))elf_symbol(&e, "_Unwind_GetGR")))
		return CONTINUE_UNWIND;
	f = (struct probe_frame *)(get_register(context, UNWIND_FRAME) - PROBE_FRAME);
	if (f->site->rule->flags & PROBE_BUILTIN)
		return CONTINUE_UNWIND;
	f->ret[0] = f->ret[1] = f->fret[0][0] = f->fret[0][1] = 0;
	finish(f, PROBE_UNWOUND);
	return CONTINUE_UNWIND;
}
