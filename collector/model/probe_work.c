/*
 * probe_work.c - what probed calls make a library do: kernels on its queues, copies, and kernels on the calling thread.
 *
 *   dispatch --- submit ----------------- wait          the host sees no more of it than this: work lasts from when it was handed
 *      `---- encoded ---|==== running ====|             over to the end of the call that waited for it, and is marked as observed
 *
 * Where a library has no submit, work runs from its dispatch on; where it has no wait, to the end of the call that handed it
 * over. A call covers the work whose queue and `of` (what is submitted as a whole: a command buffer) are those that the call
 * names, or all of the library where it names none; who waits for a part of a queue waits for what was submitted there before it,
 * too. A row that dispatches, copies or submits says `wait=1` if it blocks as well.
 * Where a row of role `time` tells the device's own times, work that is over waits a little for them. Times of a command buffer
 * are those of all work in it: none of it is known better than that it ran in between.
 */
#include "inside.h"
#include <math.h>
#include <stdio.h>

enum { FLIGHTS_MAX = 1 << 14, ARGS_BYTES = 4096, LOCAL_MAX = 0x1fffff };
#define SECONDS_MAX 9e9

/* ---- libraries ---------------------------------------------------------------------------- */

static bool has_role(const struct probe_set *set, const char *domain, enum probe_role role)
{
	const struct probe_rule *rule;
	u32 i;

	for (i = 0; (rule = probes_rule(set, i)); i++)
		if (!strcmp(rule->domain, domain) && (rule->role == role || (role == ROLE_WAIT && probe_has(rule, "wait"))))
			return true;
	return false;
}

static struct library *new_library(struct probed *c, struct dev *d)
{
	struct library *l = new_zeroed(1, sizeof(*l));
	const struct probe_set *set = c->m->probes.set;

	l->dev = d;
	l->submits = has_role(set, c->rule->domain, ROLE_SUBMIT);
	l->waits = has_role(set, c->rule->domain, ROLE_WAIT);
	l->times = has_role(set, c->rule->domain, ROLE_TIME);
	l->next = c->p->probes.libraries;
	return c->p->probes.libraries = l;
}

static struct library *library_of(struct probed *c)
{
	struct dev *d;
	struct library *l;

	if (c->site->library)
		return c->site->library;
	d = dev_of_library(c->m, c->p, c->rule->domain);
	for (l = c->p->probes.libraries; l && l->dev != d; l = l->next)
		;
	return c->site->library = l ? l : new_library(c, d);
}

/* Where programs may leave out the queue, there is one that stands for none. */
static const char *queue_name(const struct probed *c, struct handle handle)
{
	const char *name = handle.known ? handle_name(c->p, handle.value) : NULL;

	return name ? name : handle.known && !handle.value ? "default" : "";
}

/* A library with too many queues has the one that was not used for longest drawn on anew. A handle with another name is another queue. */
static struct que *queue_of(struct probed *c, struct library *l, struct handle handle)
{
	struct library_queue *q = l->queue, *oldest = q;
	const char *name = queue_name(c, handle);

	for (; q < l->queue + l->queues && (q->handle != handle.value || strcmp(q->name, name)); q++)
		if (q->used < oldest->used)
			oldest = q;
	if (q == l->queue + LIBRARY_QUEUES)
		q = oldest;
	if (q == l->queue + l->queues) {
		q->q = que_of_library(c->m, c->p, l->dev, name);
		l->queues++;
	}
	q->handle = handle.value;
	q->name = name;
	q->used = ++l->uses;
	return q->q;
}

/* ---- flights ------------------------------------------------------------------------------ */

static void observed(struct probed *c, struct work *w)
{
	w->done = DONE_OBSERVED;
	w->end = c->call.end;
	w->seen_ns = session_ns(&c->m->s, c->call.end);
}

static void timed(struct work *w, double start, double end, u32 sharers)
{
	w->call_begin_ns = w->handed_ns;
	w->done = sharers > 1 ? DONE_OBSERVED : DONE_TIMED;
	w->sharers = sharers > 1 ? sharers : 0;
	w->paced = sharers <= 1;
	w->start = (u64)(start * 1e9);
	w->end = (u64)(end * 1e9);
}

/* Nobody waited for it, and there is no more room to wait for somebody to do so. */
static void give_up(struct probed *c, struct library *l)
{
	u32 i, n = l->flights / 2;

	for (i = 0; i < n; i++) {
		struct open_work *w = l->flight[i].w;

		if (l->flight[i].state != FLIGHT_WAITED) {
			w->w.done = DONE_UNTIMED;
			w->w.seen_ns = w->w.handed_ns;
		}
		work_ready(c->m, c->p, w);
	}
	l->flights -= n;
	memmove(l->flight, l->flight + n, l->flights * sizeof(*l->flight));
}

static bool agree(struct handle a, struct handle b)
{
	return !a.known || !b.known || a.value == b.value;
}

/* Which of the library's work a call speaks of. */
struct covered {
	struct handle queue, of;
	u64 last;                       /* number of the last work that can be meant */
	u64 turn;                       /* and what was submitted to the queue up to then */
};

/* What was handed over after a queue was set on the handle `until` is not meant; nor is anything if none was. */
static u64 last_covered(const struct probed *c)
{
	struct handle until = probed_handle(c, "until");

	if (!probe_has(c->rule, "until"))
		return UINT64_MAX;
	return until.known ? handle_set_after(c->p, until.value, "queue") : 0;
}

static struct covered covered_by(const struct probed *c)
{
	return (struct covered) { probed_handle(c, "queue"), probed_handle(c, "of"), last_covered(c), 0 };
}

static bool covers(const struct covered *by, const struct flight *f)
{
	bool before = by->queue.known && f->queue.known && f->turn && f->turn <= by->turn;

	return agree(by->queue, f->queue) && (before || agree(by->of, f->of)) && f->w->w.id <= by->last;
}

static u64 turn_of(const struct library *l, struct handle of)
{
	u64 turn = 0;
	u32 i;

	for (i = 0; i < LIBRARY_SUBMITS && of.known; i++)
		if (l->submit[i].of == of.value && l->submit[i].turn > turn)
			turn = l->submit[i].turn;
	return turn;
}

/* Lands what `is_over` says; the others stay in order. */
static void land(struct probed *c, struct library *l, bool (*is_over)(struct probed *c, struct library *l, struct flight *f, const void *with),
		 const void *with)
{
	u32 i, stay = 0;

	for (i = 0; i < l->flights; i++) {
		if (is_over(c, l, &l->flight[i], with))
			work_ready(c->m, c->p, l->flight[i].w);
		else
			l->flight[stay++] = l->flight[i];
	}
	l->flights = stay;
}

static bool is_waited_for(struct probed *c, struct library *l, struct flight *f, const void *by)
{
	bool runs = f->state == FLIGHT_RUNNING || (f->state == FLIGHT_ENCODED && !l->submitted);

	if (!covers(by, f))
		return false;
	if (f->state == FLIGHT_WAITED)
		return true;            /* its times will not be told any more */
	if (!runs)
		return false;
	observed(c, &f->w->w);
	f->w->w.paced = f->alone;
	f->state = FLIGHT_WAITED;
	return !l->times || !(f->queue.known || f->of.known);
}

static void wait_for(struct probed *c, struct library *l)
{
	struct covered by = covered_by(c);

	by.turn = turn_of(l, by.of);
	land(c, l, is_waited_for, &by);
}

/* ---- work --------------------------------------------------------------------------------- */

static u64 size_of(const struct probed *c, const char *key, u64 otherwise)
{
	i64 value;

	return probed_number(c, key, &value) && value > 0 ? (u64)value : otherwise;
}

static void set_sizes(const struct probed *c, struct work *w)
{
	u64 x, y, z;

	w->x = size_of(c, "gx", 0);
	w->y = w->x ? size_of(c, "gy", 1) : 0;
	w->z = w->x ? size_of(c, "gz", 1) : 0;
	x = size_of(c, "lx", 0);
	y = size_of(c, "ly", 1);
	z = size_of(c, "lz", 1);
	if (x && x <= LOCAL_MAX && y <= LOCAL_MAX && z <= LOCAL_MAX)
		w->local = PACK3(x, y, z);
}

static struct open_work *new_work(struct probed *c, struct library *l, u32 kind)
{
	struct open_work *w = new_zeroed(1, sizeof(*w));
	char name[PROBE_NAME_MAX], args[ARGS_BYTES];

	probe_name(c->rule, &c->scope, name, sizeof(name));
	w->described = true;
	w->w.id = probed_new_number(c);
	w->w.queue = &queue_of(c, l, probed_handle(c, "queue"))->q;
	w->w.kind = kind;
	w->w.name = probe_name_once(c->m, name, c->site->function);
	w->w.bytes = c->bytes;
	w->w.flops = c->flops;
	w->w.start = c->call.begin;
	w->w.handed_ns = session_ns(&c->m->s, c->call.begin);
	if (kind == WORK_KERNEL)
		set_sizes(c, &w->w);
	if (c->p->probes.told < CALLS_FULL) {
		struct arg_text text = probed_args(c, args, sizeof(args), NULL);

		if (text.length)
			w->w.args = (struct arg_text) { text_copy(text.at, text.length), text.length };
	}
	return w;
}

/* From here on the one before is not alone, either. */
static bool is_alone(struct library *l)
{
	if (l->flights)
		l->flight[l->flights - 1].alone = false;
	return !l->flights;
}

static void hand_over(struct probed *c, u32 kind)
{
	struct library *l = library_of(c);
	struct open_work *w = new_work(c, l, kind);
	bool alone = is_alone(l);

	c->call.work = w->w.id;
	c->call.works = 1;
	if (!l->submits && !l->waits) {
		observed(c, &w->w);
		w->w.paced = true;
		work_ready(c->m, c->p, w);
		return;
	}
	if (l->flights >= FLIGHTS_MAX)
		give_up(c, l);
	ARRAY_ROOM(l->flight, l->room, l->flights + 1);
	l->flight[l->flights++] = (struct flight) {
		.w = w, .queue = probed_handle(c, "queue"), .of = probed_handle(c, "of"),
		.state = l->submits ? FLIGHT_ENCODED : FLIGHT_RUNNING, .alone = alone,
	};
	c->late = true;
	if (probed_is(c, "wait")) {
		l->flight[l->flights - 1].state = FLIGHT_RUNNING;
		c->late = !alone;
		wait_for(c, l);
	}
}

/* Sums only: a slice on the thread shows it already. */
static void count_copy(struct probed *c, struct dev *d, u32 kind)
{
	u64 start = session_ns(&c->m->s, c->call.begin), end = session_ns(&c->m->s, c->call.end);
	struct work w = {
		.kind = kind, .name = c->call.name, .done = DONE_OBSERVED, .bytes = c->bytes, .flops = c->flops,
		.start = start, .end = end, .start_ns = start, .end_ns = end,
	};

	work_sum_up(c->m, d, &w);
}

/* ---- roles -------------------------------------------------------------------------------- */

/* A span that says how much it computes is a kernel of the CPU. */
void probed_span(struct probed *c)
{
	char name[PROBE_NAME_MAX];

	if (!(c->flops > 0) && !probed_is(c, "kernel"))
		return;
	if (!c->site->kernels) {
		snprintf(name, sizeof(name), "CPU: %s", c->rule->domain);
		c->site->kernels = dev_of_library(c->m, c->p, name);
	}
	nest_kernel(c, c->site->kernels);
}

void probed_dispatch(struct probed *c)
{
	hand_over(c, WORK_KERNEL);
}

void probed_copy(struct probed *c)
{
	static const u32 kind_of[] = {
		[DIRECTION_H2H] = WORK_COPY, [DIRECTION_H2D] = WORK_WRITE, [DIRECTION_D2H] = WORK_READ, [DIRECTION_D2D] = WORK_COPY,
		[DIRECTION_FILL] = WORK_FILL, [DIRECTION_UNKNOWN] = WORK_COPY,
	};
	u32 kind = kind_of[probe_direction(c->rule, &c->scope)];

	if (probe_has(c->rule, "queue")) {
		hand_over(c, kind);
		return;
	}
	count_copy(c, library_of(c)->dev, kind);
	if (probed_is(c, "wait"))
		wait_for(c, library_of(c));
}

/* Arrows lead from the submit to its work if that has one number after the other. */
void probed_submit(struct probed *c)
{
	struct library *l = library_of(c);
	struct covered by = covered_by(c);
	u64 last = 0;
	u32 i;

	l->submitted = true;
	l->turns++;
	if (by.of.known) {
		l->submit[l->turns % LIBRARY_SUBMITS].of = by.of.value;
		l->submit[l->turns % LIBRARY_SUBMITS].turn = l->turns;
	}
	for (i = 0; i < l->flights; i++) {
		struct flight *f = &l->flight[i];

		if (f->state != FLIGHT_ENCODED || !covers(&by, f))
			continue;
		f->state = FLIGHT_RUNNING;
		f->turn = l->turns;
		if (f->w->w.start < c->call.begin) {
			f->w->w.start = c->call.begin;
			f->w->w.handed_ns = session_ns(&c->m->s, c->call.begin);
		}
		if (!c->call.works++)
			c->call.work = f->w->w.id;
		last = f->w->w.id;
	}
	if (c->call.works && last - c->call.work != c->call.works - 1)
		c->call.works = 0;
	if (!l->waits || probed_is(c, "wait"))
		wait_for(c, l);
}

void probed_wait(struct probed *c)
{
	if (!probe_has(c->rule, "over") || probed_is(c, "over"))
		wait_for(c, library_of(c));
}

/* ---- times of the device ------------------------------------------------------------------ */

struct times {
	struct handle of;
	double start, end;
	u32 sharers;
};

static bool is_meant(const struct times *t, const struct flight *f)
{
	bool named = (f->of.known && f->of.value == t->of.value) || (f->queue.known && f->queue.value == t->of.value);

	return named && f->state != FLIGHT_ENCODED;
}

static bool is_timed(struct probed *c, struct library *l, struct flight *f, const void *with)
{
	const struct times *t = with;

	(void)l;
	if (!is_meant(t, f))
		return false;
	if (t->start > 0)
		f->start = t->start;
	if (t->end > 0)
		f->end = t->end;
	if (!(f->start > 0) || f->end < f->start)
		return false;
	if (f->state == FLIGHT_RUNNING)
		observed(c, &f->w->w);
	timed(&f->w->w, f->start, f->end, t->sharers);
	return true;
}

static double seconds(const struct probed *c, const char *key)
{
	double value;

	return probe_number(c->rule, key, &c->scope, &value, NULL) && value > 0 && value < SECONDS_MAX ? value : 0;
}

void probed_time(struct probed *c)
{
	struct times t = { probed_handle(c, "of"), seconds(c, "start"), seconds(c, "end"), 0 };
	struct library *l = library_of(c);
	u32 i;

	if (!t.of.known)
		return;
	for (i = 0; i < l->flights; i++)
		t.sharers += is_meant(&t, &l->flight[i]);
	land(c, l, is_timed, &t);
}

/* ---- the end ------------------------------------------------------------------------------ */

/* What is over is placed; what is not is left to works_close(). */
void libraries_close(struct model *m, struct proc *p)
{
	struct library *l;
	u32 i;

	for (l = p->probes.libraries; l; l = l->next) {
		for (i = 0; i < l->flights; i++) {
			struct open_work *w = l->flight[i].w;

			if (l->flight[i].state == FLIGHT_WAITED)
				work_ready(m, p, w);
			else
				HASH_ADD(hh, p->devices.works, w.id, sizeof(w->w.id), w);
		}
		l->flights = 0;
	}
}

void libraries_release(struct probes *all)
{
	struct library *l, *next;
	u32 i;

	for (l = all->libraries; l; l = next) {
		next = l->next;
		for (i = 0; i < l->flights; i++) {
			free((char *)l->flight[i].w->w.args.at);
			free(l->flight[i].w);
		}
		free(l->flight);
		free(l);
	}
}
