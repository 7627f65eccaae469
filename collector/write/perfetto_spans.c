/*
 * perfetto_spans.c - every large block as a bar from its birth to its death, and the moments worth a mark.
 *
 *   process
 *     large blocks  (group)
 *       malloc   |-- at::empty ------|   |-- load_weights --------      lanes: tracks of one name and parent,
 *       malloc        |-- im2col --|                                     which the trace processor shows as one
 *
 * Bars on one track must not overlap, so a block takes the lane that has been free for longest, or a new one.
 */
#include "driver.h"
#include "perfetto.h"

#include <stdio.h>

struct lane {
	u64 free_from;                  /* ns */
	u64 track;
};

/* A heap of lanes by free_from for each pool of one process. */
struct lanes {
	struct lane *at;
	u32 count, room;
	u64 group;                      /* "large blocks" */
	const char *name;
};

/* ---- lanes ------------------------------------------------------------------------- */

static bool earlier(const struct lane *a, const struct lane *b)
{
	return a->free_from < b->free_from || (a->free_from == b->free_from && a->track < b->track);
}

static void swap(struct lane *a, struct lane *b)
{
	struct lane t = *a;

	*a = *b;
	*b = t;
}

static void sink_first(struct lanes *l)
{
	for (u32 i = 0, child; (child = 2 * i + 1) < l->count; i = child) {
		if (child + 1 < l->count && earlier(&l->at[child + 1], &l->at[child]))
			child++;
		if (!earlier(&l->at[child], &l->at[i]))
			break;
		swap(&l->at[child], &l->at[i]);
	}
}

static void raise_last(struct lanes *l)
{
	for (u32 i = l->count - 1; i && earlier(&l->at[i], &l->at[(i - 1) / 2]); i = (i - 1) / 2)
		swap(&l->at[i], &l->at[(i - 1) / 2]);
}

/* The track for a bar from `start` to `end`, or 0 without memory. */
static u64 lane_for(struct perfetto *w, struct lanes *l, u64 start, u64 end)
{
	if (l->count && l->at[0].free_from <= start) {
		u64 track = l->at[0].track;

		l->at[0].free_from = end;
		sink_first(l);
		return track;
	}
	if (l->count == l->room) {
		u32 room = l->room * 2 + 8;
		struct lane *at = realloc(l->at, room * sizeof(*at));

		if (!at)
			return 0;
		l->at = at;
		l->room = room;
	}
	u64 track = track_new(w, l->name, l->group, -1, 0);

	l->at[l->count++] = (struct lane){ end, track };
	raise_last(l);
	return track;
}

/* ---- threads ----------------------------------------------------------------------- */

static int by_tid_and_start(const void *a, const void *b)
{
	const struct thread *x = *(struct thread *const *)a, *y = *(struct thread *const *)b;

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->start > y->start) - (x->start < y->start);
}

static struct thread **threads_sorted(const struct process *p)
{
	struct thread **list = malloc((p->threads + 1) * sizeof(*list));

	for (u32 i = 0; list && i < p->threads; i++)
		list[i] = &p->thread[i];
	if (list)
		qsort(list, p->threads, sizeof(*list), by_tid_and_start);
	return list;
}

/* Numbers of threads are used again: the last one that had begun by then. */
static const struct thread *thread_at(struct thread **sorted, u32 count, u32 tid, u64 ticks)
{
	u32 low = 0, high = count;

	while (low < high) {
		u32 middle = (low + high) / 2;
		const struct thread *t = sorted[middle];

		if (t->tid < tid || (t->tid == tid && t->start <= ticks))
			low = middle + 1;
		else
			high = middle;
	}
	if (low && sorted[low - 1]->tid == tid)
		return sorted[low - 1];
	return low < count && sorted[low]->tid == tid ? sorted[low] : NULL;
}

/* ---- one bar ----------------------------------------------------------------------- */

struct bars {
	struct perfetto *w;
	const struct session *session;
	const struct process *process;
	struct symbols *symbols;
	struct stacks *stacks;
	struct thread **thread;         /* sorted */
	struct lanes *lanes;            /* by pool */
	u32 sequence;
	bool begun;
	u64 end_ns;                     /* of the process, UINT64_MAX if it saw the end of the recording */
};

static void arg(struct bars *b, struct enc *e, const char *name, u32 field, u64 value)
{
	size_t mark = enc_open(e, EVENT_ANNOTATION);

	enc_uint(e, ARG_NAME_IID, stacks_arg_name(b->stacks, name));
	enc_uint(e, field, value);
	enc_close(e, mark);
}

static void arg_text(struct bars *b, struct enc *e, const char *name, const char *text)
{
	if (text)
		arg(b, e, name, ARG_TEXT_IID, stacks_arg_text(b->stacks, text));
}

/* A block that the driver of a device took says so. */
static void driver_args(struct bars *b, struct enc *e, u32 node)
{
	struct driver_call call = driver_call(b->symbols, b->process, node);
	const struct device *device = call.name ? driver_device(b->process) : NULL;

	if (call.name)
		arg_text(b, e, "driver_call", *call.name ? call.name : "unknown");
	if (device)
		arg_text(b, e, "driver_of", device->title);
	if (call.ours)
		arg_text(b, e, "driver_for", "mlprof");
}

static void begin_event(struct bars *b, struct enc *e, const struct span *s, u64 track)
{
	const struct frame *owner = symbols_owner(b->symbols, b->process, s->node, NULL);
	const struct thread *t = b->thread ? thread_at(b->thread, b->process->threads, s->tid, s->born) : NULL;
	size_t mark = enc_open(e, PACKET_TRACK_EVENT);

	enc_uint(e, EVENT_KIND, KIND_BEGIN);
	enc_uint(e, EVENT_TRACK, track);
	enc_uint(e, EVENT_NAME_IID, stacks_event_name(b->stacks, owner->function));
	arg(b, e, "size", ARG_UINT, s->size);
	arg(b, e, "address", ARG_POINTER, s->addr);
	arg(b, e, "thread_id", ARG_UINT, s->tid);
	arg_text(b, e, "thread", t ? t->name : NULL);
	arg_text(b, e, "pool", b->lanes[s->pool].name);
	driver_args(b, e, s->node);
	if (!s->died)
		arg(b, e, "never_freed", ARG_BOOL, 1);
	enc_uint(e, EVENT_CALLSTACK_IID, stacks_callstack(b->stacks, s->node, NULL));
	enc_close(e, mark);
}

static void end_event(struct bars *b, u64 track, u64 ns)
{
	struct enc *e = packet_open(b->w, b->sequence, 2, ns);
	size_t mark = enc_open(e, PACKET_TRACK_EVENT);

	enc_uint(e, EVENT_KIND, KIND_END);
	enc_uint(e, EVENT_TRACK, track);
	enc_close(e, mark);
	packet_close(b->w);
}

/* A block that nobody frees lives as long as its process; one that outlives the recording has no end. */
static void bar(struct bars *b, const struct span *s)
{
	u64 start = ns_of(b->w, s->born), end = s->died ? ns_of(b->w, s->died) : b->end_ns;
	struct enc *e;

	if (end < start)
		end = start;

	u64 track = lane_for(b->w, &b->lanes[s->pool], start, end);

	if (!track)
		return;
	e = packet_open(b->w, b->sequence, b->begun ? 2 : 1, start);
	begin_event(b, e, s, track);
	stacks_write(b->stacks, e);
	packet_close(b->w);
	b->begun = true;
	if (end != UINT64_MAX)
		end_event(b, track, end);
}

/* ---- a process's bars -------------------------------------------------------------- */

static struct lanes *lanes_of(struct perfetto *w, const struct process *p)
{
	struct lanes *lanes = calloc(p->pools.count + 1, sizeof(*lanes));
	struct process_tracks *k = tracks_of(w, p);

	if (lanes && k && !k->large)
		k->large = track_new(w, "large blocks", k->process, -1, 1);
	for (u32 i = 0; lanes && k && i < p->pools.count; i++) {
		lanes[i].group = k->large;
		lanes[i].name = p->pools.at[i].name;
	}
	return lanes;
}

static void prepare(struct bars *b, const struct span *const *span, u32 count)
{
	u32 *node = malloc((count + 1) * sizeof(*node));

	for (u32 i = 0; node && i < count; i++)
		node[i] = span[i]->node;
	if (node)
		symbols_prepare(b->symbols, b->process, node, count);
	free(node);
}

static void process_bars(struct bars *b, const struct span *const *span, u32 count)
{
	const struct process *p = b->process;

	b->stacks = stacks_new(b->symbols, p);
	b->thread = threads_sorted(p);
	b->lanes = lanes_of(b->w, p);
	b->sequence = b->w->next_sequence++;
	b->end_ns = (p->index || p->died == DIED_EXEC) && p->ended && p->ended < b->session->end && p->died != DIED_RUNNING ?
		ns_of(b->w, process_end(b->session, p)) : UINT64_MAX;
	prepare(b, span, count);
	for (u32 i = 0; b->stacks && b->lanes && i < count; i++)
		if (span[i]->pool < p->pools.count)
			bar(b, span[i]);
	for (u32 i = 0; b->lanes && i < p->pools.count; i++)
		free(b->lanes[i].at);
	free(b->lanes);
	free(b->thread);
	stacks_free(b->stacks);
}

/* Spans come in order of birth; here they are put together by process, order kept. */
void spans_write(struct perfetto *w, struct session *s, struct symbols *y)
{
	const struct span **list = malloc((s->spans + 1) * sizeof(*list));
	u32 *first = calloc(s->processes + 2, sizeof(*first));

	if (list && first) {
		for (u32 i = 0; i < s->spans; i++)
			first[s->span[i].process + 2]++;
		for (u32 i = 3; i < s->processes + 2; i++)
			first[i] += first[i - 1];
		for (u32 i = 0; i < s->spans; i++)
			list[first[s->span[i].process + 1]++] = &s->span[i];
	}
	for (u32 i = 0; list && first && i < s->processes; i++) {
		struct bars b = { .w = w, .session = s, .process = s->process[i], .symbols = y };

		if (first[i + 1] > first[i])
			process_bars(&b, list + first[i], first[i + 1] - first[i]);
	}
	free(list);
	free(first);
}

/* ---- instants ---------------------------------------------------------------------- */

static void instant(struct perfetto *w, u64 track, u64 ns, const char *name, const char *arg_name, u64 value)
{
	struct enc *e = packet_open(w, SEQ_INSTANTS, 0, ns);
	size_t mark = enc_open(e, PACKET_TRACK_EVENT);

	enc_uint(e, EVENT_KIND, KIND_INSTANT);
	enc_uint(e, EVENT_TRACK, track);
	enc_utf8(e, EVENT_NAME, name);
	if (arg_name) {
		size_t annotation = enc_open(e, EVENT_ANNOTATION);

		enc_text(e, ARG_NAME, arg_name);
		enc_uint(e, ARG_UINT, value);
		enc_close(e, annotation);
	}
	enc_close(e, mark);
	packet_close(w);
}

static void process_instants(struct perfetto *w, const struct session *s, const struct process *p)
{
	struct process_tracks *k = tracks_of(w, p);
	char text[4096];

	if (!k || !k->process)
		return;
	if (p->total.peak > 0)
		instant(w, track_new(w, "peak", k->memory, 5, 0), ns_of(w, p->total.peak_ticks), "peak", "bytes", p->total.peak);
	if (p->died != DIED_RUNNING)
		instant(w, track_new(w, "end of process", k->process, -1, 0), ns_of(w, process_end(s, p)),
			process_ending(p, text, sizeof(text)), NULL, 0);
	for (u32 i = 0; i < p->threads; i++)
		if (p->thread[i].end && p->thread[i].track)
			instant(w, p->thread[i].track, ns_of(w, p->thread[i].end), "end of thread", NULL, 0);
}

void instants_write(struct perfetto *w, struct session *s)
{
	if (s->total.peak > 0)
		instant(w, track_new(w, "peak (all processes)", 0, -1, 0), ns_of(w, s->total.peak_ticks),
			"peak", "bytes", s->total.peak);
	for (u32 i = 0; i < s->processes; i++)
		process_instants(w, s, s->process[i]);
}
