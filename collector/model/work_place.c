/*
 * work_place.c - device work gets its place on the host's time line, and into the sums.
 *
 * A device's clock is known the better the more has run, so work that is over is held back: until READY_MAX pieces wait,
 * or bounds of the clock would be forgotten that some of them need, or the process ends. Then the line through the
 * clock's bounds is drawn, and the pieces are told in order of their start. The line is right to within its residual;
 * what the host saw is right for certain: work starts after its call began and ends before its end was noticed. Those
 * moments are taken as they were told at the time, so that on the time line no work is before its call.
 */
#include "inside.h"

enum { READY_MAX = 4096, STRETCHES_HELD = FIT_STRETCHES / 2, KERNELS_MAX = 1 << 17 };

static struct dev *dev_of_work(const struct open_work *w)
{
	return (struct dev *)w->w.queue->device;
}

/* ---- the clock ------------------------------------------------------------------------------ */

/* What a piece of work tells of its device's clock. Readings of the clock itself are better, where there are any. */
static void learn(struct dev *d, const struct work *w)
{
	u64 begin = w->call_begin_ns ? w->call_begin_ns : FIT_NO_LOW, end = w->call_end_ns ? w->call_end_ns : FIT_NO_HIGH;

	if (!work_has_stamps(w) || d->pairs)
		return;
	if (w->queued && d->d.clock != DEVICE_CLOCK_NONE)
		d->stretches += fit_add(&d->fit, w->queued, begin, end);
	else
		d->stretches += fit_add(&d->fit, w->start, begin, FIT_NO_HIGH);
	d->stretches += fit_add(&d->fit, w->end, FIT_NO_LOW, w->seen_ns);
}

/* ---- places ---------------------------------------------------------------------------------- */

static u64 smaller(u64 a, u64 b)
{
	return a < b ? a : b;
}

static void note_moved(struct clock_report *r, u64 before, u64 after)
{
	u64 by = after > before ? after - before : before - after;

	r->moved += by != 0;
	if (by > r->max_moved_ns)
		r->max_moved_ns = by;
}

/* Moved as a whole, so that its length stays as the device saw it; cut only where that does not help. */
static void keep_inside(struct work *w)
{
	u64 low = w->call_begin_ns, high = w->seen_ns;

	if (w->start_ns < low) {
		w->end_ns += low - w->start_ns;
		w->start_ns = low;
	}
	if (w->end_ns > high) {
		u64 back = smaller(w->end_ns - high, w->start_ns - smaller(low, w->start_ns));

		w->start_ns -= back;
		w->end_ns -= back;
	}
	if (w->end_ns > high)
		w->end_ns = high > w->start_ns ? high : w->start_ns;
}

static bool is_in_device_time(const struct work *w)
{
	return work_has_stamps(w) || w->inside == DONE_IN_TIMED;
}

static void place(struct model *m, const struct dev *d, struct work *w)
{
	if (is_in_device_time(w)) {
		w->start_ns = fit_ns(&d->fit, w->start);
		w->end_ns = fit_ns(&d->fit, w->end);
	} else if (w->done == DONE_OBSERVED || w->inside == DONE_IN_OBSERVED) {
		w->start_ns = session_ns(&m->s, w->start);
		w->end_ns = session_ns(&m->s, w->end);
	} else {
		w->start_ns = w->handed_ns;
		w->end_ns = w->seen_ns;
	}
	if (w->end_ns < w->start_ns)
		w->end_ns = w->start_ns;
}

/* The parts of a whole come behind it. */
static int by_start(const void *a, const void *b)
{
	const struct work *x = &(*(struct open_work *const *)a)->w, *y = &(*(struct open_work *const *)b)->w;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	if (!x->inside != !y->inside)
		return x->inside ? 1 : -1;
	if (x->end_ns != y->end_ns)
		return x->end_ns < y->end_ns ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

/* ---- sums ------------------------------------------------------------------------------------ */

static struct work_sum *kernel_of(struct dev *d, const char *name)
{
	struct kernel_index *k;

	HASH_FIND_PTR(d->by_name, &name, k);
	if (k)
		return &d->d.kernel[k->at];
	if (d->d.kernels >= KERNELS_MAX)
		return NULL;
	k = new_zeroed(1, sizeof(*k));
	k->name = name;
	k->at = d->d.kernels;
	HASH_ADD_PTR(d->by_name, name, k);
	ARRAY_ROOM(d->d.kernel, d->kernel_room, d->d.kernels + 1);
	d->d.kernel[k->at] = (struct work_sum) { .name = name };
	return &d->d.kernel[d->d.kernels++];
}

/* What failed moved nothing. */
static bool is_unsized(const struct work *w)
{
	return w->bytes == WORK_BYTES_UNKNOWN && w->done != DONE_FAILED;
}

static void add_up(struct work_sum *s, const struct work *w, bool timed, u64 ns)
{
	bool moved = w->done != DONE_NEVER && w->done != DONE_FAILED && w->bytes != WORK_BYTES_UNKNOWN;

	s->calls += w->done != DONE_NEVER;
	s->failed += w->done == DONE_FAILED;
	s->unfinished += w->done == DONE_NEVER;
	s->bytes += moved ? w->bytes : 0;
	s->unsized += is_unsized(w);
	s->tiles += w->tiles;
	s->tile_sum_ns += w->tile_sum_ns;
	if (!timed)
		return;
	if (!s->timed++ || ns < s->min_ns)
		s->min_ns = ns;
	if (ns > s->max_ns)
		s->max_ns = ns;
	s->total_ns += ns;
	s->observed += w->done == DONE_OBSERVED && !w->sharers;
	s->shared += w->sharers != 0;
	s->flops += w->flops;
	if (w->paced && w->flops > 0)
		pace_add(&s->paced_flops, w->flops, ns);
}

/* What touches others becomes one with them. */
static void add_busy(u64 *sum, struct busy *b, u64 start, u64 end)
{
	u32 above = b->count, i;

	while (above && b->at[above - 1].start > end)
		above--;
	for (i = above; i && b->at[i - 1].end >= start; i--) {
		*sum -= b->at[i - 1].end - b->at[i - 1].start;
		start = smaller(start, b->at[i - 1].start);
		end = b->at[i - 1].end > end ? b->at[i - 1].end : end;
	}
	*sum += end - start;
	if (i == above && b->count == BUSY_STRETCHES) {         /* the oldest one is forgotten */
		if (!i)
			return;
		memmove(&b->at[0], &b->at[1], --b->count * sizeof(b->at[0]));
		i = --above;
	}
	memmove(&b->at[i + 1], &b->at[above], (b->count - above) * sizeof(b->at[0]));
	b->at[i].start = start;
	b->at[i].end = end;
	b->count += i + 1 - above;
}

/* Into the sums of its device, whether it is drawn or not. */
void work_sum_up(struct model *m, struct dev *d, const struct work *w)
{
	bool timed = w->done == DONE_TIMED || w->done == DONE_OBSERVED;
	u64 ns = work_has_stamps(w) ? w->end - w->start : w->end_ns - w->start_ns;
	struct work_sum *k = w->kind == WORK_KERNEL ? kernel_of(d, w->name) : NULL;

	if (k)
		add_up(k, w, timed, ns);
	add_up(&d->d.kind[w->kind], w, timed, ns);
	if (w->kind != WORK_MARK && work_has_stamps(w))
		add_busy(&d->d.busy_ns, &d->busy, w->start, w->end);
	else if (w->kind != WORK_MARK && timed)
		add_busy(&d->d.busy_ns, &d->busy_host, w->start_ns, w->end_ns);
	d->d.done[w->done]++;
	m->s.losses.untimed += w->done == DONE_UNTIMED;
	m->s.losses.unsized += is_unsized(w);
	m->s.losses.failed += w->done == DONE_FAILED;
	m->s.losses.unfinished += w->done == DONE_NEVER;
}

/* ---- telling --------------------------------------------------------------------------------- */

/* Only the host saw it, and each end by itself: one wait for all of a library's work says nothing of which took how long. */
static bool is_watched(const struct work *w)
{
	if (w->done == DONE_OBSERVED)
		return !w->sharers && !device_is_library(w->queue->device);
	return w->done == DONE_UNTIMED || w->done == DONE_FAILED;
}

void work_tell(struct model *m, struct open_work *w)
{
	struct dev *d = dev_of_work(w);
	struct queue *q = w->w.queue;

	/* Such work began, in a queue that keeps order, when the one before had ended. */
	if (is_watched(&w->w) && !(q->flags & QUEUE_OUT_OF_ORDER) && q->last_ns > w->w.start_ns)
		w->w.start_ns = smaller(q->last_ns, w->w.end_ns);
	work_sum_up(m, d, &w->w);
	if (w->w.done != DONE_NEVER && w->w.end_ns > q->last_ns)
		q->last_ns = w->w.end_ns;
	if (m->listener.work)
		m->listener.work(m->listener.to, m->s.process[d->d.process], &w->w);
}

static void settle(struct model *m, struct dev *d, struct open_work *w)
{
	u64 before = w->w.start_ns;

	if (is_in_device_time(&w->w)) {
		keep_inside(&w->w);
		note_moved(&d->d.match, before, w->w.start_ns);
	}
	if (w->w.inside)                        /* a moment in the whole: nobody knows which */
		w->w.end_ns = w->w.start_ns;
	work_tell(m, w);
	free((char *)w->w.args.at);
	free(w);
}

/* The earlier half of what is ready, or all of it. */
void works_place(struct model *m, struct dev *d, bool all)
{
	u32 i, n = all ? d->readys : d->readys / 2;

	if (!d->readys)
		return;
	fit_line(&d->fit);
	d->d.match.match = d->fit.match;
	if (d->fit.residual > d->d.match.residual_ns)
		d->d.match.residual_ns = d->fit.residual;
	for (i = 0; i < d->readys; i++)
		place(m, d, &d->ready[i]->w);
	qsort(d->ready, d->readys, sizeof(*d->ready), by_start);
	for (i = 0; i < n; i++)
		settle(m, d, d->ready[i]);
	d->readys -= n;
	memmove(d->ready, d->ready + n, d->readys * sizeof(*d->ready));
	d->stretches = 0;
}

/* Bounds of the clock that waiting work needs are about to be forgotten. */
void works_place_old(struct model *m, struct dev *d)
{
	if (d->stretches >= STRETCHES_HELD)
		works_place(m, d, true);
}

void work_ready(struct model *m, struct proc *p, struct open_work *w)
{
	struct dev *d = dev_of_work(w);

	(void)p;
	learn(d, &w->w);
	works_place_old(m, d);
	ARRAY_ROOM(d->ready, d->ready_room, d->readys + 1);
	d->ready[d->readys++] = w;
	if (d->readys >= READY_MAX)
		works_place(m, d, false);
}
