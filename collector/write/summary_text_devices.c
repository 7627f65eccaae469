/*
 * summary_text_devices.c - devices, kernels and waits for people.
 *
 *   Devices    memory at its peak, time busy, how far its times may be off
 *   Kernels    the longest, by name
 *   Waits      how long the host was blocked on devices
 */
#include "summary_text.h"

#include <stdlib.h>

enum { DEVICES_MAX = 8, BLOCKS_SHOWN = 4, RANGES_SHOWN = 3, KERNELS_MAX = 10, WAITS_MAX = 3 };

/* ---- devices ----------------------------------------------------------------------- */

static u64 works(const struct device *d)
{
	u64 all = 0;

	for (u32 i = 0; i < DONE_KINDS; i++)
		all += d->done[i];
	return all;
}

/* Whose it is, where that is a question. */
static void process_note(struct text *t, const struct device *d)
{
	u32 processes = 0;

	for (u32 i = 0; i < t->s->processes; i++)
		processes += t->s->process[i]->devices != 0;
	if (processes > 1)
		buf_print(&t->b, "  in pid %u", t->s->process[d->process]->pid);
}

static void clock_note(struct text *t, const struct device *d)
{
	if (!d->done[DONE_TIMED] || (device_is_library(d) && !d->match.samples))
		return;
	if (d->match.match == MATCH_NONE)
		buf_text(&t->b, "  (its clock is not known to the host's)");
	else
		buf_print(&t->b, "  (times within %s)", units_time(d->match.residual_ns));
}

/* Blocks whose size says little: most of it is unused. */
static void block_row(struct text *t, const struct used_block *b)
{
	buf_print(&t->b, "%*s   of it a block, %s of that used by commands", FIRST_COLUMN, units_bytes((i64)b->bytes), units_bytes((i64)b->used.bytes));
	if (b->used.count)
		buf_print(&t->b, " in %u ranges%s", b->used.count, b->used.more ? " and more" : "");
	for (u32 i = 0; i < b->ranges && i < RANGES_SHOWN; i++) {
		buf_print(&t->b, "%s%s at %llu by ", i ? ", " : ": ", units_bytes((i64)b->range[i].length), (unsigned long long)b->range[i].offset);
		text_safe(&t->b, b->range[i].name ? b->range[i].name : "an unknown one");
	}
	buf_char(&t->b, '\n');
}

static void block_rows(struct text *t, const struct device *d)
{
	for (u32 i = 0, rows = 0; i < d->blocks && rows < BLOCKS_SHOWN; i++)
		if (d->block[i].used.bytes < d->block[i].bytes / 2 && ++rows)
			block_row(t, &d->block[i]);
}

static void device_row(struct text *t, const struct device *d)
{
	const struct process *p = t->s->process[d->process];
	const struct pool *pool = d->heaps ? &p->pools.at[d->pool] : NULL;

	buf_print(&t->b, "%*s %11s %12s %10s %10s %10s  ", FIRST_COLUMN, units_bytes(pool ? pool->peak : 0),
		  units_time(summary_duration_ns(t->s, t->s->start, pool ? pool->peak_ticks : t->s->start)),
		  units_bytes(pool ? pool->now : 0), units_time(d->busy_ns), units_count(summary_kernels(d)), units_count(works(d)));
	text_safe(&t->b, d->title);
	process_note(t, d);
	clock_note(t, d);
	buf_char(&t->b, '\n');
	block_rows(t, d);
}

/* A library that has no more than a heap stands among the pools. */
static bool is_shown(const struct device *d)
{
	return !device_is_library(d) || device_counts(d) || works(d);
}

static u32 count_shown(const struct session *s)
{
	u32 count = 0;

	for (u32 i = 0; i < s->processes; i++)
		for (u32 k = 0; k < s->process[i]->devices; k++)
			count += is_shown(s->process[i]->device[k]);
	return count;
}

static void devices(struct text *t)
{
	u32 rows = 0;

	text_table(t, "Devices", "peak", "          at      at exit       busy    kernels       work  name");
	for (u32 i = 0; i < t->s->processes; i++)
		for (u32 k = 0; k < t->s->process[i]->devices; k++)
			if (is_shown(t->s->process[i]->device[k]) && rows++ < DEVICES_MAX)
				device_row(t, t->s->process[i]->device[k]);
	if (rows > DEVICES_MAX)
		buf_print(&t->b, "                 ... and %u more\n", rows - DEVICES_MAX);
	buf_char(&t->b, '\n');
}

/* ---- kernels ----------------------------------------------------------------------- */

struct kernel_row {
	const struct device *device;
	const struct work_sum *sum;
};

static int longest_first(const void *a, const void *b)
{
	const struct kernel_row *x = a, *y = b;

	if (x->sum->total_ns != y->sum->total_ns)
		return x->sum->total_ns > y->sum->total_ns ? -1 : 1;
	return x->sum->calls > y->sum->calls ? -1 : x->sum->calls < y->sum->calls;
}

/* What was submitted is a row where it alone was timed, and not the kernels in it. */
static bool has_wholes(const struct device *d)
{
	const struct work_sum *k = &d->kind[WORK_KERNEL];

	return d->kind[WORK_GROUP].timed && (!k->calls || k->timed + k->failed < k->calls);
}

/* A device's own list is sorted: no more than its first ones can be among the longest of all. */
static u32 collect(const struct session *s, struct kernel_row *row)
{
	u32 rows = 0;

	for (u32 i = 0; i < s->processes; i++)
		for (u32 k = 0; k < s->process[i]->devices; k++) {
			const struct device *d = s->process[i]->device[k];

			for (u32 n = 0; n < d->kernels && n < KERNELS_MAX; n++)
				row[rows++] = (struct kernel_row){ d, &d->kernel[n] };
			if (has_wholes(d))
				row[rows++] = (struct kernel_row){ d, &d->kind[WORK_GROUP] };
		}
	return rows;
}

/* Times that the host saw hold what others did meanwhile: added up, they may be more than all there is, and then they are no share of it. */
static const char *share(const struct kernel_row *r)
{
	return r->sum->total_ns <= r->device->busy_ns || !r->sum->observed ? units_percent(r->sum->total_ns, r->device->busy_ns) : "";
}

static const char *time_of(const struct work_sum *k, u64 ns)
{
	return k->timed ? units_time(ns) : "";
}

static void kernel_row(struct text *t, const struct kernel_row *r, bool rates)
{
	const struct work_sum *k = r->sum;

	buf_print(&t->b, "%*s %8s %10s %10s %10s %10s  ", FIRST_COLUMN, time_of(k, k->total_ns),
		  k->timed ? share(r) : "", units_count(k->calls), time_of(k, k->timed ? k->total_ns / k->timed : 0),
		  time_of(k, k->min_ns), time_of(k, k->max_ns));
	if (rates && k->paced_flops.ns)
		buf_print(&t->b, "%8.2f  ", summary_per_ns(k->paced_flops));
	else if (rates)
		buf_print(&t->b, "%8s  ", "");
	text_safe(&t->b, k->name ? k->name : "submissions as a whole");
	buf_text(&t->b, "  on ");
	text_safe(&t->b, r->device->title);
	process_note(t, r->device);
	if (k->failed)
		buf_print(&t->b, "  (%s failed)", units_count(k->failed));
	if (k->timed + k->failed < k->calls)
		buf_print(&t->b, "  (%s without times)", units_count(k->calls - k->timed - k->failed));
	if (k->observed)
		buf_print(&t->b, "  (%s as the host saw them)", k->observed == k->timed ? "times" : units_count(k->observed));
	if (k->shared)
		buf_print(&t->b, "  (%s of all that was submitted with them)", k->shared == k->timed ? "times" : units_count(k->shared));
	if (k->unfinished)
		buf_print(&t->b, "  (%s unfinished)", units_count(k->unfinished));
	buf_char(&t->b, '\n');
}

static u32 count_devices(const struct session *s, u64 *kernels)
{
	u32 devices = 0;

	*kernels = 0;
	for (u32 i = 0; i < s->processes; i++)
		for (u32 k = 0; k < s->process[i]->devices; k++, devices++)
			*kernels += s->process[i]->device[k]->kernels + has_wholes(s->process[i]->device[k]);
	return devices;
}

/* Sums of more than the run want an explanation. */
static void overlap_note(struct text *t, const struct device *d)
{
	u64 all = d->kind[WORK_KERNEL].total_ns, run = summary_duration_ns(t->s, t->s->start, t->s->end);

	if (all <= run)
		return;
	buf_print(&t->b, "%*s in all, in a run of ", FIRST_COLUMN, units_time(all));
	buf_print(&t->b, "%s: %s overlap  on ", units_time(run), d->queues > 1 ? "queues" : "kernels");
	text_safe(&t->b, d->title);
	buf_char(&t->b, '\n');
}

static void kernels(struct text *t)
{
	u64 all;
	u32 devices = count_devices(t->s, &all);
	struct kernel_row *row = calloc((size_t)devices * (KERNELS_MAX + 1) + 1, sizeof(*row));
	u32 rows = row ? collect(t->s, row) : 0, shown = rows < KERNELS_MAX ? rows : KERNELS_MAX;
	bool rates = false;

	if (rows) {
		qsort(row, rows, sizeof(*row), longest_first);
		for (u32 i = 0; i < shown; i++)
			rates |= row[i].sum->paced_flops.ns > 0;
		text_table(t, "Kernels", "total", rates ? "   % busy      calls    average   shortest    longest   GFLOP/s  name" :
							  "   % busy      calls    average   shortest    longest  name");
		for (u32 i = 0; i < shown; i++)
			kernel_row(t, &row[i], rates);
		if (all > shown)
			buf_print(&t->b, "                 ... and %llu more\n", (unsigned long long)all - shown);
		for (u32 i = 0; i < t->s->processes; i++)
			for (u32 k = 0; k < t->s->process[i]->devices; k++)
				overlap_note(t, t->s->process[i]->device[k]);
		buf_char(&t->b, '\n');
	}
	free(row);
}

void text_devices(struct text *t)
{
	if (!count_shown(t->s))
		return;
	devices(t);
	kernels(t);
}

/* ---- waits ------------------------------------------------------------------------- */

void text_waits(struct text *t)
{
	struct summary_waits all = summary_waits(t->s);
	u32 shown = 0;

	if (!all.calls)
		return;
	text_heading(t, "Waits");
	buf_print(&t->b, "host blocked on device %s", units_time(all.total_ns));
	if (t->s->waiters > 1 && all.total_ns > summary_duration_ns(t->s, t->s->start, t->s->end))
		buf_print(&t->b, " over %s threads", units_count(t->s->waiters));
	buf_print(&t->b, " in %s calls:", units_count(all.calls));
	for (u32 i = 0; i < t->s->calls && shown < WAITS_MAX; i++) {
		const struct call_sum *c = &t->s->call[i];

		if (c->kind != CALL_WAIT)
			continue;
		buf_text(&t->b, shown++ ? ", " : " ");
		text_safe(&t->b, c->name);
		buf_print(&t->b, " %s (%s)", units_time(c->total_ns), units_count(c->calls));
	}
	buf_char(&t->b, '\n');
}
