/*
 * work.c - device work in flight.
 *
 * Three things are said of each piece, by different threads and in any order: what it is (`work`), that it is over
 * (`work_done`), and which call caused it (`call`). With all three it is ready to be placed on the device's time line.
 * What is kept is what is in flight.
 */
#include "inside.h"

enum { FLIGHT_MAX = 1 << 20, ORPHANS_MAX = 1 << 14, LOOKS_FREE = 16 };

static const char *const kind_name[WORK_KINDS] = {
	[WORK_KERNEL] = "kernel", [WORK_READ] = "read", [WORK_WRITE] = "write", [WORK_COPY] = "copy", [WORK_FILL] = "fill",
	[WORK_MAP] = "map", [WORK_UNMAP] = "unmap", [WORK_MARK] = "marker", [WORK_GROUP] = "commands", [WORK_OTHER] = "work",
};

static struct open_work *find(const struct proc *p, u64 id)
{
	struct open_work *w;

	HASH_FIND(hh, p->devices.works, &id, sizeof(id), w);
	return w;
}

static struct open_work *find_or_new(struct model *m, struct proc *p, u64 id)
{
	struct open_work *w = find(p, id);

	if (w)
		return w;
	if (HASH_COUNT(p->devices.works) >= FLIGHT_MAX) {
		m->s.losses.works++;
		return NULL;
	}
	w = new_zeroed(1, sizeof(*w));
	w->w.id = id;
	HASH_ADD(hh, p->devices.works, w.id, sizeof(w->w.id), w);
	return w;
}

static void land(struct model *m, struct proc *p, struct open_work *w)
{
	p->devices.orphans -= !w->called;
	HASH_DEL(p->devices.works, w);
	work_ready(m, p, w);
}

/* Calls that never come must not keep what is over for ever. */
static void land_orphans(struct model *m, struct proc *p)
{
	struct open_work *w, *next;

	HASH_ITER(hh, p->devices.works, w, next)
		if (w->described && w->ended)
			land(m, p, w);
}

/* What the host has seen needs no call to be placed. */
static void progress(struct model *m, struct proc *p, struct open_work *w)
{
	if (!w->described || !w->ended)
		return;
	if (!w->called && w->w.done != DONE_OBSERVED) {
		if (++p->devices.orphans > ORPHANS_MAX)
			land_orphans(m, p);
		return;
	}
	HASH_DEL(p->devices.works, w);
	work_ready(m, p, w);
}

/* ---- what it is -------------------------------------------------------------------------- */

static void note_call(struct open_work *w, const struct recent_call *c)
{
	w->called = true;
	w->w.call_begin_ns = c->begin_ns;
	w->w.call_end_ns = c->end_ns;
}

/* Its call may have been told before it. */
static void look_for_call(const struct devices *all, struct open_work *w)
{
	u32 i;

	for (i = 0; i < RECENT_CALLS && !w->called; i++) {
		const struct recent_call *c = &all->recent[i];

		if (w->w.id - c->work < c->works)
			note_call(w, c);
	}
}

/* Its beginning and its end may both have something to say. */
static void add_args(struct open_work *w, const struct event *e)
{
	struct arg_text *a = &w->w.args;
	u32 from = a->length ? a->length + 1 : 0;
	char *both;

	if (!e->text_len)
		return;
	both = new_zeroed(1, (size_t)from + e->text_len + 1);
	if (a->length)
		memcpy(both, a->at, a->length);
	memcpy(both + from, e->text, e->text_len);
	free((char *)a->at);
	*a = (struct arg_text) { both, from + e->text_len };
}

void work_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_work *r = EVENT_BODY(e, work);
	struct open_work *w = find_or_new(m, p, r->id);
	const char *name;

	(void)s;
	if (!w || w->described)
		return;
	w->described = true;
	p->devices.may_look++;
	w->w.kind = r->kind < WORK_KINDS ? (u32)r->kind : WORK_OTHER;
	w->w.queue = &que_of(m, p, r->queue)->q;
	name = name_text(m, p, r->name);
	w->w.name = name ? name : kind_name[w->w.kind];
	w->w.node = site_node(m, p, r->site);
	w->w.bytes = r->bytes;
	w->w.x = r->x;
	w->w.y = r->y;
	w->w.z = r->z;
	w->w.local = r->local;
	w->w.handed_ns = session_ns(&m->s, e->ticks);
	add_args(w, e);
	look_for_call(&p->devices, w);
	progress(m, p, w);
}

/* ---- that it is over ---------------------------------------------------------------------- */

void work_done_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_work_done *r = EVENT_BODY(e, work_done);
	struct open_work *w = find_or_new(m, p, r->id);

	(void)s;
	if (!w || w->ended)
		return;
	w->ended = true;
	w->w.done = r->status <= DONE_FAILED ? (u32)r->status : DONE_UNTIMED;
	w->w.inside = r->status == DONE_IN_TIMED || r->status == DONE_IN_OBSERVED ? (u32)r->status : 0;
	w->w.queued = r->queued;
	w->w.submitted = r->submitted;
	w->w.start = r->start;
	w->w.end = r->end;
	w->w.seen_ns = session_ns(&m->s, e->ticks);
	add_args(w, e);
	if (!r->start || r->end < r->start || r->end >> 63) {
		w->w.done = w->w.done == DONE_TIMED ? DONE_UNTIMED : w->w.done;
		w->w.inside = 0;
	}
	progress(m, p, w);
}

/* ---- who worked at it ----------------------------------------------------------------------- */

static u64 between(u64 low, u64 value, u64 high)
{
	return value < low ? low : value > high ? high : value;
}

void run_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_run *r = EVENT_BODY(e, run);
	struct open_work *w = find(p, r->work);
	struct work_run run = { .name = name_text(m, p, r->name), .work = r->work, .tiles = r->tiles };

	(void)s;
	run.begin = between(p->p.born, r->begin, e->ticks);
	run.end = between(run.begin, r->end, e->ticks);
	run.busy_ns = session_ns(&m->s, run.begin + between(0, r->busy, run.end - run.begin)) - session_ns(&m->s, run.begin);
	m->s.losses.unknown_ids += !w;
	if (w && !w->ended) {
		w->w.tiles += r->tiles;
		w->w.tile_sum_ns += run.busy_ns;
		w->w.workers += !r->again;
	}
	if (!run.name)
		run.name = kind_name[WORK_OTHER];
	if (m->listener.run)
		m->listener.run(m->listener.to, &p->p, live_thread(p, (u32)r->tid), &run);
}

/* ---- which call caused it ------------------------------------------------------------------ */

static void call_found(struct model *m, struct proc *p, struct open_work *w, const struct recent_call *c)
{
	if (w->called)
		return;
	if (w->described && w->ended)
		p->devices.orphans--;
	note_call(w, c);
	progress(m, p, w);
}

/* A call may claim any number of works. It is believed as far as works were told of; there is one look for each, and
 * LOOKS_FREE for those whose calls come first. */
void works_called(struct model *m, struct proc *p, const struct call *c)
{
	struct recent_call *recent = &p->devices.recent[p->devices.recents++ % RECENT_CALLS], call;
	struct open_work *w;
	u64 i;

	call = *recent = (struct recent_call) { c->work, c->works, session_ns(&m->s, c->begin), session_ns(&m->s, c->end) };
	p->devices.may_look += LOOKS_FREE;
	for (i = 0; i < c->works && p->devices.may_look; i++, p->devices.may_look--) {
		w = find(p, c->work + i);
		if (w)
			call_found(m, p, w, &call);
	}
}

/* ---- the end ------------------------------------------------------------------------------- */

static void never_done(struct model *m, struct open_work *w, u64 ticks)
{
	w->w.done = DONE_NEVER;
	w->w.start_ns = w->w.handed_ns;
	w->w.end_ns = w->w.seen_ns = session_ns(&m->s, ticks);
	if (w->w.end_ns < w->w.start_ns)
		w->w.end_ns = w->w.start_ns;
	work_tell(m, w);
}

static void free_work(struct open_work *w)
{
	free((char *)w->w.args.at);
	free(w);
}

/* The process is over: what is ready is placed, what is not over never will be. */
void works_close(struct model *m, struct proc *p, u64 ticks)
{
	struct open_work *w, *next;
	u32 i;

	land_orphans(m, p);
	for (i = 0; i < p->p.devices; i++)
		works_place(m, (struct dev *)p->p.device[i], true);
	HASH_ITER(hh, p->devices.works, w, next) {
		HASH_DEL(p->devices.works, w);
		if (w->described)
			never_done(m, w, ticks);
		else
			m->s.losses.unknown_ids++;
		free_work(w);
	}
}

void works_release(struct proc *p)
{
	struct open_work *w, *next;
	u32 i, j;

	HASH_ITER(hh, p->devices.works, w, next) {
		HASH_DEL(p->devices.works, w);
		free_work(w);
	}
	for (i = 0; i < p->p.devices; i++) {
		struct dev *d = (struct dev *)p->p.device[i];

		for (j = 0; j < d->readys; j++)
			free_work(d->ready[j]);
		d->readys = 0;
	}
}
