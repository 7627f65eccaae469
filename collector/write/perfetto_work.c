/*
 * perfetto_work.c - calls into APIs on their threads, and the work that they caused on its queue.
 *
 *   thread     |clEnqueueNDRangeKernel|   |clFinish (wait)            |      or its own share of a CPU's work: |tiles |
 *                      `-- flow ----------.
 *   queue 0                               |sgemm      |
 *   queue 0                                  |copy |             a second lane, for what overlaps
 *   queue 1              |vkQueueSubmit        |                 timed as a whole, ...
 *                        |sgemm, |copy                           ... so these are moments in it
 *
 * Work comes in order of its start, nearly; it takes the first lane that is free then. Whether two pieces overlap is
 * asked in the device's own time where there is one: the host's may be off by the clock's residual. What finds no lane
 * free waits for one, and says how long (`drawn_late_ns`).
 *
 * The first CALLS_FULL slices of a process say everything, those after them what matters most, and what is beyond
 * SLICES_MAX is counted but not drawn: no viewer would open it.
 */
#include "perfetto_devices.h"

#include <stdio.h>

enum {
	UNFINISHED_MAX = 32,            /* of a queue, drawn one by one */
	FLOWS_MAX = 1 << 16,            /* of a call */
	RANK_QUEUE = 100,
};

static const char *const call_category[] = {
	[CALL_OTHER] = "call", [CALL_ENQUEUE] = "enqueue", [CALL_SUBMIT] = "submit", [CALL_WAIT] = "wait", [CALL_BUILD] = "build",
	[CALL_MEMORY] = "memory", [CALL_SPAN] = "span", [CALL_COPY] = "copy", [CALL_MARK] = "mark",
};

static const char *const work_category[WORK_KINDS] = {
	[WORK_KERNEL] = "kernel", [WORK_READ] = "read", [WORK_WRITE] = "write", [WORK_COPY] = "copy", [WORK_FILL] = "fill",
	[WORK_MAP] = "map", [WORK_UNMAP] = "unmap", [WORK_MARK] = "mark", [WORK_GROUP] = "group", [WORK_OTHER] = "other",
};

static const char *const done_mark[DONE_KINDS] = {
	[DONE_OBSERVED] = "observed_by_host", [DONE_UNTIMED] = "untimed", [DONE_FAILED] = "failed", [DONE_NEVER] = "unfinished",
};

static u64 flow_id(const struct process *p, u64 work)
{
	return (u64)(p->index + 1) << 40 ^ work;
}

static bool is_full(const struct process_devices *of)
{
	return of->slices <= CALLS_FULL;
}

/* ---- calls ------------------------------------------------------------------------- */

static u64 call_track(struct perfetto *w, struct process_devices *of, const struct process *p, const struct thread *t)
{
	struct process_tracks *k = tracks_of(w, p);

	if (t && t->track)
		return t->track;
	if (!of->nobody && k && k->process)
		of->nobody = track_new(w, "calls of unknown threads", k->process, -1, 0);
	return of->nobody;
}

static void call_args(struct slice *s, const struct process *p, const struct call *c)
{
	struct process_devices *of = s->of;
	u64 works = c->works < FLOWS_MAX ? c->works : FLOWS_MAX;

	for (u64 i = 0; i < works; i++)
		enc_fixed(s->e, EVENT_FLOW, flow_id(p, c->work + i));
	if (c->error)
		arg_number(of->stacks, s->e, "error", ARG_INT, (u64)c->error);
	if (c->failed)
		arg_number(of->stacks, s->e, "failed", ARG_BOOL, 1);
	if (c->unwound)
		arg_number(of->stacks, s->e, "left_by_exception", ARG_BOOL, 1);
	if (c->works > 1)
		arg_number(of->stacks, s->e, "works", ARG_UINT, c->works);
	if (is_full(of))
		args_of_text(&of->keys, of->stacks, s->e, &c->args);
	if (c->node)
		enc_uint(s->e, EVENT_CALLSTACK_IID, stacks_callstack(of->stacks, c->node, NULL));
}

void works_call(struct perfetto *w, struct process *p, struct thread *t, const struct call *c)
{
	struct process_devices *of = devices_of(w, p);
	u64 track = of && slice_counts(w, of) ? call_track(w, of, p, t) : 0;
	bool moment = c->kind == CALL_MARK;
	struct slice s;

	if (!track)
		return;
	s = (moment ? slice_moment : slice_begin)(w, of, ns_of(w, c->begin), track, call_category[c->kind], c->name);
	call_args(&s, p, c);
	slice_open(&s);
	if (moment)
		return;
	s = slice_end(w, of, ns_of(w, c->end), track);
	slice_open(&s);
}

void works_run(struct perfetto *w, struct process *p, struct thread *t, const struct work_run *r)
{
	struct process_devices *of = devices_of(w, p);
	u64 track = of && slice_counts(w, of) ? call_track(w, of, p, t) : 0;
	struct slice s;

	if (!track)
		return;
	s = slice_begin(w, of, ns_of(w, r->begin), track, "tiles", r->name);
	if (is_full(of)) {
		arg_number(of->stacks, s.e, "tiles", ARG_UINT, r->tiles);
		arg_number(of->stacks, s.e, "busy_ns", ARG_UINT, r->busy_ns);
		arg_number(of->stacks, s.e, "work", ARG_UINT, r->work);
	}
	slice_open(&s);
	s = slice_end(w, of, ns_of(w, r->end), track);
	slice_open(&s);
}

/* ---- lanes ------------------------------------------------------------------------- */

static struct queue_tracks *queue_tracks(struct perfetto *w, struct process_devices *of, struct queue *q)
{
	struct device_tracks *device = device_tracks(w, of, q->device);
	struct queue_tracks *k = q->tracks;

	if (k || !device)
		return k;
	k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->parent = device->track;
	k->rank = RANK_QUEUE + (int)q->number;
	k->name = strdup(q->name);
	k->next = of->queues;
	of->queues = k;
	return q->tracks = k;
}

static bool follows(const struct work_lane *l, u64 start_ns, u64 device_start)
{
	return l->end_ns <= start_ns || (l->device_end && device_start >= l->device_end);
}

/* The first lane that is free, a new one, or if there are enough the one that is free soonest. */
static struct work_lane *lane_for(struct perfetto *w, struct queue_tracks *k, u64 start_ns, u64 device_start)
{
	struct work_lane *soonest = &k->lane[0];

	for (u32 i = 0; i < k->lanes; i++) {
		if (follows(&k->lane[i], start_ns, device_start))
			return &k->lane[i];
		if (k->lane[i].end_ns < soonest->end_ns)
			soonest = &k->lane[i];
	}
	if (k->lanes == LANES_MAX)
		return soonest;
	k->lane[k->lanes].track = track_new(w, k->name ? k->name : "queue", k->parent, k->rank, 0);
	return &k->lane[k->lanes++];
}

/* ---- work -------------------------------------------------------------------------- */

/* What an API counts: work-items or groups of them. Of a library nobody knows. */
static const struct { const char *api, *x, *y, *z; } size_names[] = {
	{ "OpenCL", "global_x", "global_y", "global_z" }, { "Vulkan", "groups_x", "groups_y", "groups_z" }, { NULL, "size_x", "size_y", "size_z" },
};

static void sizes(struct slice *s, const struct work *w)
{
	const char *api = w->queue->device->api;
	struct stacks *k = s->of->stacks;
	u32 n = 0;

	while (size_names[n].api && (!api || strcmp(api, size_names[n].api)))
		n++;
	if (w->x) {
		arg_number(k, s->e, size_names[n].x, ARG_UINT, w->x);
		arg_number(k, s->e, size_names[n].y, ARG_UINT, w->y);
		arg_number(k, s->e, size_names[n].z, ARG_UINT, w->z);
	}
	if (w->local) {
		arg_number(k, s->e, "local_x", ARG_UINT, w->local & 0x1fffff);
		arg_number(k, s->e, "local_y", ARG_UINT, w->local >> 21 & 0x1fffff);
		arg_number(k, s->e, "local_z", ARG_UINT, w->local >> 42);
	}
}

static void tiles(struct slice *s, const struct work *w)
{
	struct stacks *k = s->of->stacks;

	arg_number(k, s->e, "tiles", ARG_UINT, w->tiles);
	arg_number(k, s->e, "tile_sum_ns", ARG_UINT, w->tile_sum_ns);
	arg_number(k, s->e, "workers", ARG_UINT, w->workers);
}

static void stamps(struct slice *s, const struct work *w)
{
	struct stacks *k = s->of->stacks;

	arg_number(k, s->e, "duration_ns", ARG_UINT, w->end - w->start);
	if (w->queued && w->submitted >= w->queued)
		arg_number(k, s->e, "queued_to_submit_ns", ARG_UINT, w->submitted - w->queued);
	if (w->submitted && w->start >= w->submitted)
		arg_number(k, s->e, "submit_to_start_ns", ARG_UINT, w->start - w->submitted);
	if (w->queued)
		arg_number(k, s->e, "device_queued", ARG_UINT, w->queued);
	if (w->submitted)
		arg_number(k, s->e, "device_submitted", ARG_UINT, w->submitted);
	arg_number(k, s->e, "device_start", ARG_UINT, w->start);
	arg_number(k, s->e, "device_end", ARG_UINT, w->end);
}

static void work_args(struct slice *s, const struct work *w)
{
	struct process_devices *of = s->of;

	enc_fixed(s->e, EVENT_FLOW, flow_id(of->process, w->id));
	if (w->sharers)
		arg_number(of->stacks, s->e, "shared_by", ARG_UINT, w->sharers);
	else if (done_mark[w->done])
		arg_number(of->stacks, s->e, done_mark[w->done], ARG_BOOL, 1);
	if (w->bytes == WORK_BYTES_UNKNOWN)
		arg_number(of->stacks, s->e, "bytes_unknown", ARG_BOOL, 1);
	else if (w->bytes)
		arg_number(of->stacks, s->e, "bytes", ARG_UINT, w->bytes);
	if (w->flops > 0)
		arg_real(of->stacks, s->e, "flops", w->flops);
	if (is_full(of)) {
		arg_number(of->stacks, s->e, "work", ARG_UINT, w->id);
		sizes(s, w);
		if (w->tiles)
			tiles(s, w);
		args_of_text(&of->keys, of->stacks, s->e, &w->args);
	}
	if (work_has_stamps(w) && is_full(of))
		stamps(s, w);
	if (w->node)
		enc_uint(s->e, EVENT_CALLSTACK_IID, stacks_callstack(of->stacks, w->node, NULL));
}

/* More work may be left unfinished than anybody wants to look at. */
static bool is_too_many(struct queue_tracks *k, const struct work *w)
{
	if (w->done != DONE_NEVER || k->unfinished++ < UNFINISHED_MAX)
		return false;
	if (!k->more++ || w->start_ns < k->more_since)
		k->more_since = w->start_ns;
	if (w->end_ns > k->more_until)
		k->more_until = w->end_ns;
	return true;
}

static u64 larger(u64 a, u64 b)
{
	return a > b ? a : b;
}

static void draw(struct perfetto *w, struct process_devices *of, u64 track, const struct work *work, u64 start, u64 end, u64 late)
{
	struct slice s = slice_begin(w, of, start, track, work_category[work->kind], work->name);

	work_args(&s, work);
	if (late)
		arg_number(of->stacks, s.e, "drawn_late_ns", ARG_UINT, late);
	slice_open(&s);
	s = slice_end(w, of, end, track);
	slice_open(&s);
}

/* A part comes right behind its whole, unless too many others came between. It is no instant: those of one time are inside of each other. */
static void draw_part(struct perfetto *w, struct process_devices *of, struct queue_tracks *k, const struct work *work)
{
	struct work_lane *lane = k->whole && work->start_ns <= k->whole->end_ns ? k->whole : lane_for(w, k, work->start_ns, 0);
	u64 at = larger(work->start_ns, lane->start_ns);

	draw(w, of, lane->track, work, at, at, 0);
}

static void draw_bar(struct perfetto *w, struct process_devices *of, struct queue_tracks *k, const struct work *work)
{
	bool timed = work_has_stamps(work);
	u64 device_start = timed ? work->start : 0;
	struct work_lane *lane = lane_for(w, k, work->start_ns, device_start);
	u64 start = larger(work->start_ns, lane->end_ns), end = larger(work->end_ns, start);
	u64 late = follows(lane, work->start_ns, device_start) ? 0 : start - work->start_ns;

	lane->start_ns = start;
	lane->end_ns = end;
	lane->device_end = timed ? larger(work->end, 1) : 0;
	if (work->kind == WORK_GROUP)
		k->whole = lane;
	draw(w, of, lane->track, work, start, end, late);
}

void works_work(struct perfetto *w, struct process *p, const struct work *work)
{
	struct process_devices *of = devices_of(w, p);
	struct queue_tracks *k = of && slice_counts(w, of) ? queue_tracks(w, of, work->queue) : NULL;

	if (k && !is_too_many(k, work))
		(work->inside ? draw_part : draw_bar)(w, of, k, work);
}

static void more_unfinished(struct perfetto *w, struct process_devices *of, struct queue_tracks *k)
{
	static const char name[] = "more unfinished work";
	struct work_lane *lane = lane_for(w, k, k->more_since, 0);
	u64 start = larger(k->more_since, lane->end_ns);
	struct slice s = slice_begin(w, of, start, lane->track, work_category[WORK_GROUP], name);

	arg_number(of->stacks, s.e, done_mark[DONE_NEVER], ARG_BOOL, 1);
	arg_number(of->stacks, s.e, "works", ARG_UINT, k->more);
	slice_open(&s);
	s = slice_end(w, of, larger(start, k->more_until), lane->track);
	slice_open(&s);
}

void works_finish(struct perfetto *w, struct process_devices *of)
{
	for (struct queue_tracks *k = of->queues; k; k = k->next)
		if (k->more)
			more_unfinished(w, of, k);
}
