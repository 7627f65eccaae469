/*
 * perfetto_heap.c - heap profiles: who held the memory at a process's peak and at its end.
 *
 *   libc.malloc           blocks live at the process's own peak of malloc + anonymous mappings
 *   mmap                  anonymous mappings at the same moment
 *   libc.malloc at exit   what was left, with everything ever allocated as "total"
 *   mmap at exit
 *   OpenCL 0 memory       the memory of a device, or of a library's own heap, at its own peak
 *   OpenCL 0 memory at exit
 *
 * Each is one dump on a sequence of its own: a second dump on a sequence would be taken as a difference to the
 * first. A dump may be spread over packets; all but the last say `continued`.
 */
#include "perfetto.h"
#include "util/radix.h"

#include <stdio.h>

enum {
	PROFILE_DUMPS = 5, PROFILE_CONTINUED = 6, PROFILE_INDEX = 7,
	DUMP_PID = 1, DUMP_SAMPLE = 2, DUMP_TIMESTAMP = 9, DUMP_HEAP_NAME = 11,
	SAMPLE_CALLSTACK = 1, SAMPLE_ALLOCATED = 2, SAMPLE_FREED = 3, SAMPLE_ALLOCS = 5, SAMPLE_FREES = 6,
};

enum {
	STACKS_PER_DUMP = 20000,        /* beyond this small ones are put together */
	STACKS_PER_TRACE = 60000,       /* for all processes; those with the highest peaks are served first ... */
	STACKS_AT_LEAST = 20,           /* ... and the others still get so many */
	FOLDED_MAX = 1000,              /* groups that small stacks are put into */
	DEPTH_MAX = 4096,
	PACKET_BYTES = 256 << 10,
};

static const char small_stacks[] = "[small stacks]";

struct dump {
	struct perfetto *w;
	const struct process *process;
	struct symbols *symbols;
	struct stacks *stacks;
	u16 *depth;                     /* by node: frames to the outermost, at most DEPTH_MAX; NULL: not asked for yet */
	const char *heap;
	bool run;                       /* everything ever allocated, not only what lives */
	u64 ns;
	u32 sequence, index;
	struct enc samples;
};

/* One row of a dump: live = allocated - freed. */
struct amount {
	u64 allocated, freed, allocs, frees;
};

static void write_packet(struct dump *d, bool last)
{
	struct enc *e = packet_open(d->w, d->sequence, d->index ? 2 : 1, d->ns - 1);     /* before an exec of that moment */

	stacks_write(d->stacks, e);

	size_t profile = enc_open(e, PACKET_PROFILE), dump = enc_open(e, PROFILE_DUMPS);

	enc_uint(e, DUMP_PID, d->process->pid);
	enc_uint(e, DUMP_TIMESTAMP, d->ns);
	enc_utf8(e, DUMP_HEAP_NAME, d->heap);
	enc_raw(e, d->samples.at, d->samples.len);
	enc_close(e, dump);
	if (!last)
		enc_uint(e, PROFILE_CONTINUED, 1);
	enc_uint(e, PROFILE_INDEX, d->index++);
	enc_close(e, profile);
	packet_close(d->w);
	d->samples.len = 0;
}

static void add_sample(struct dump *d, u32 callstack, const struct amount *a)
{
	struct enc *e = &d->samples;
	size_t mark = enc_open(e, DUMP_SAMPLE);

	enc_uint(e, SAMPLE_CALLSTACK, callstack);
	enc_uint(e, SAMPLE_ALLOCATED, a->allocated);
	enc_uint(e, SAMPLE_FREED, a->freed);
	enc_uint(e, SAMPLE_ALLOCS, a->allocs);
	enc_uint(e, SAMPLE_FREES, a->frees);
	enc_close(e, mark);
	if (e->len + stacks_pending(d->stacks) >= PACKET_BYTES)
		write_packet(d, false);
}

/* ---- rows -------------------------------------------------------------------------- */

/* What was allocated up to the peak is not known for each stack, so a peak's row is what lived. Bytes without a
 * block (a mapping of which only a part is left) count as one: rows without a count are not drawn. */
static struct amount live_amount(const struct holder *h)
{
	u64 blocks = h->blocks > 0 ? h->blocks : h->bytes > 0;

	return (struct amount){ .allocated = h->bytes > 0 ? h->bytes : 0, .allocs = blocks };
}

static struct amount run_amount(const struct holder *h)
{
	struct amount live = live_amount(h), a = live;

	if (h->allocated_bytes > a.allocated)
		a.allocated = h->allocated_bytes;
	if (h->allocs > a.allocs)
		a.allocs = h->allocs;
	a.freed = a.allocated - live.allocated;
	a.frees = a.allocs - live.allocs;
	return a;
}

static struct amount amount_of(const struct dump *d, const struct holder *h)
{
	return d->run ? run_amount(h) : live_amount(h);
}

static void add_amount(struct amount *to, const struct amount *a)
{
	to->allocated += a->allocated;
	to->freed += a->freed;
	to->allocs += a->allocs;
	to->frees += a->frees;
}

/* ---- small stacks ------------------------------------------------------------------ */

struct group {
	u32 node;
	struct amount sum;
};

struct fold {
	struct dump *dump;
	const struct holder **row;
	u32 rows;
	u32 max;                        /* groups */
	struct group group[FOLDED_MAX];
};

/* The frame around this one was made before it, so that one sweep over all nodes does for many walks to the root. */
static u32 outer(const struct process *p, u32 node)
{
	return p->node[node].parent < node ? p->node[node].parent : 0;
}

static u32 row_node(const struct fold *f, u32 row)
{
	u32 node = f->row[row]->node;

	return node < f->dump->process->nodes ? node : 0;
}

/* How many frames, counted from the outermost, can be kept without making too many groups. Cut at some depth, the rows
 * make a group for each frame that any of them has there, and one for each stack that ends before. */
static u32 deepest(const struct fold *f, bool *marked)
{
	u32 passed[DEPTH_MAX + 1] = { 0 }, ends[DEPTH_MAX + 1] = { 0 }, shorter, depth;
	const u16 *depth_of = f->dump->depth;

	for (u32 i = 0; i < f->rows; i++) {
		u32 node = row_node(f, i);

		ends[depth_of[node]] += !marked[node];
		marked[node] = true;
	}
	for (u32 i = f->dump->process->nodes; i-- > 1;)
		if (marked[i]) {
			passed[depth_of[i]]++;
			marked[outer(f->dump->process, i)] = true;
		}
	for (depth = 1, shorter = ends[0]; depth < DEPTH_MAX; shorter += ends[depth++])
		if (passed[depth] + shorter > f->max)
			break;
	return depth - 1;
}

/* By node: where its stack is cut at some depth. */
static void cut_at(const struct fold *f, u32 depth, u32 *cut)
{
	for (u32 i = 1; i < f->dump->process->nodes; i++)
		cut[i] = f->dump->depth[i] > depth ? cut[outer(f->dump->process, i)] : i;
}

/* Puts rows under their stacks as far as these are cut; returns how many groups that makes. */
static u32 put_together(struct fold *f, const u32 *cut, u16 *group_of)
{
	u32 groups = 0;

	for (u32 i = 0; i < f->rows; i++) {
		u32 node = cut[row_node(f, i)];
		u16 *group = &group_of[node];           /* group + 1 */
		struct amount a = amount_of(f->dump, f->row[i]);

		if (!*group) {
			f->group[groups] = (struct group){ .node = node };
			*group = ++groups;
		}
		add_amount(&f->group[*group - 1].sum, &a);
	}
	return groups;
}

/* Puts rows under the longest common beginnings of their stacks that make few enough groups; returns how many. */
static u32 fold(struct fold *f)
{
	size_t nodes = f->dump->process->nodes;
	bool *marked = calloc(nodes, sizeof(*marked));
	u32 *cut = calloc(nodes, sizeof(*cut)), groups = 0;
	u16 *group_of = calloc(nodes, sizeof(*group_of));

	if (marked && cut && group_of) {
		cut_at(f, deepest(f, marked), cut);
		groups = put_together(f, cut, group_of);
	}
	free(marked);
	free(cut);
	free(group_of);
	return groups;
}

static bool measure_depth(struct dump *d)
{
	const struct process *p = d->process;

	if (d->depth)
		return true;
	d->depth = calloc(p->nodes, sizeof(*d->depth));
	for (u32 i = 1; d->depth && i < p->nodes; i++) {
		u32 around = d->depth[outer(p, i)];

		d->depth[i] = around < DEPTH_MAX ? around + 1 : DEPTH_MAX;
	}
	return d->depth;
}

static void add_folded(struct dump *d, const struct holder **row, u32 rows, u32 limit)
{
	struct fold *f = calloc(1, sizeof(*f));
	u32 node[FOLDED_MAX] = { 0 }, groups;

	if (f && measure_depth(d)) {
		*f = (struct fold){ .dump = d, .row = row, .rows = rows };
		f->max = limit / 4 < FOLDED_MAX ? limit / 4 + 1 : FOLDED_MAX;
		groups = fold(f);
		for (u32 i = 0; i < groups; i++)
			node[i] = f->group[i].node;
		symbols_prepare(d->symbols, d->process, node, groups);
		for (u32 i = 0; i < groups; i++)
			add_sample(d, stacks_callstack(d->stacks, node[i], small_stacks), &f->group[i].sum);
	}
	free(f);
}

/* ---- which rows are drawn one by one ----------------------------------------------- */

/* Weights are not negative, so their bits are in their order. */
static u64 rank_of(const struct amount *a, const struct amount *all)
{
	double weight = (double)(a->allocated - a->freed) / (all->allocated - all->freed + 1.0) +
			(double)a->allocated / (all->allocated + 1.0);
	u64 bits;

	memcpy(&bits, &weight, sizeof(bits));
	return ~bits;
}

/* By their share of what lives and of what was allocated: the heaviest `limit` first. The others stay in the order they had,
 * in which they lie in memory; they are many, and are all looked at again. */
static void rank_rows(const struct dump *d, const struct holder **row, u32 rows, u32 limit, const struct amount *all)
{
	struct ranked *list = malloc((2 * (size_t)rows + 1) * sizeof(*list)), *sorted;
	const struct holder **was = malloc(rows * sizeof(*was));
	u32 other = limit;

	if (list && was) {
		for (u32 i = 0; i < rows; i++) {
			struct amount a = amount_of(d, row[i]);

			list[i] = (struct ranked){ rank_of(&a, all), i };
		}
		sorted = radix_sort(list, rows);
		memcpy(was, row, rows * sizeof(*was));
		for (u32 i = 0; i < limit; i++) {
			row[i] = was[sorted[i].at];
			was[sorted[i].at] = NULL;
		}
		for (u32 i = 0; i < rows; i++)
			if (was[i])
				row[other++] = was[i];
	}
	free(list);
	free(was);
}

/* Puts the heaviest rows first, as the live ones are already; returns how many of them make up nearly all bytes, at
 * most `limit`. */
static u32 rows_kept(const struct dump *d, const struct holder **row, u32 rows, u32 limit)
{
	struct amount all = { 0 }, sum = { 0 };
	u32 kept = 0;

	if (rows <= limit)
		return rows;
	for (u32 i = 0; i < rows; i++) {
		struct amount a = amount_of(d, row[i]);

		add_amount(&all, &a);
	}
	if (d->run)
		rank_rows(d, row, rows, limit, &all);
	for (; kept < limit && (sum.allocated < all.allocated - all.allocated / 1000 ||
	     sum.allocated - sum.freed < (all.allocated - all.freed) / 1000 * 999); kept++) {
		struct amount a = amount_of(d, row[kept]);

		add_amount(&sum, &a);
	}
	return kept;
}

/* ---- dumps ------------------------------------------------------------------------- */

static void prepare(struct dump *d, const struct holder **row, u32 rows)
{
	u32 *node = malloc((rows + 1) * sizeof(*node));

	for (u32 i = 0; node && i < rows; i++)
		node[i] = row[i]->node;
	if (node)
		symbols_prepare(d->symbols, d->process, node, rows);
	free(node);
}

/* Stacks that have much in common come close together, and what is looked up for one is at hand for the next. */
static void sort_by_node(const struct holder **row, u32 rows)
{
	struct ranked *list = malloc((2 * (size_t)rows + 1) * sizeof(*list)), *sorted;
	const struct holder *first = row[0];

	if (!list)
		return;
	for (u32 i = 0; i < rows; i++) {
		first = row[i] < first ? row[i] : first;
		list[i].key = ~(u64)row[i]->node;
	}
	for (u32 i = 0; i < rows; i++)
		list[i].at = row[i] - first;
	sorted = radix_sort(list, rows);
	for (u32 i = 0; i < rows; i++)
		row[i] = first + sorted[i].at;
	free(list);
}

static void add_rows(struct dump *d, const struct holder **row, u32 rows, u32 limit)
{
	u32 kept = rows_kept(d, row, rows, limit);

	sort_by_node(row, kept);
	prepare(d, row, kept);
	for (u32 i = 0; i < kept; i++) {
		struct amount a = amount_of(d, row[i]);

		add_sample(d, stacks_callstack(d->stacks, row[i]->node, NULL), &a);
	}
	if (kept < rows)
		add_folded(d, row + kept, rows - kept, limit);
	write_packet(d, true);
}

static u32 rows_of_pool(const struct holder_list *list, u32 pool, const struct holder **row)
{
	u32 rows = 0;

	for (u32 i = 0; i < list->count; i++)
		if (list->at[i].pool == pool)
			row[rows++] = &list->at[i];
	return rows;
}

struct request {
	const char *heap;
	u32 pool;
	bool run;
};

/* `d` has what all dumps of a process share. */
static void dump(struct dump *d, const struct holder_list *list, u64 ticks, u32 limit, const struct request *what)
{
	const struct holder **row = malloc((list->count + 1) * sizeof(*row));
	u32 rows = row ? rows_of_pool(list, what->pool, row) : 0;

	if (rows && !d->stacks)
		d->stacks = stacks_new(d->symbols, d->process);
	if (rows && d->stacks) {
		d->heap = what->heap;
		d->run = what->run;
		d->ns = ns_of(d->w, ticks);
		d->sequence = d->w->next_sequence++;
		d->index = 0;
		stacks_next_sequence(d->stacks);
		add_rows(d, row, rows, limit);
	}
	free(row);
}

/* The viewer takes names apart at colons and puts them into SQL. */
static void plain_name(char *text)
{
	for (; *text; text++)
		if (strchr(":'\"\\", *text))
			*text = ' ';
}

static void device_dumps(struct dump *all, u32 limit)
{
	const struct process *p = all->process;
	char heap[128];

	for (u32 i = 0; p->device_peak && i < p->devices; i++) {
		const struct device *d = p->device[i];

		if (!d->heaps || d->pool >= p->pools.count)
			continue;
		if (device_is_library(d))
			snprintf(heap, sizeof(heap), "%.100s memory", d->title);
		else
			snprintf(heap, sizeof(heap), "%.100s %u memory", d->api, d->number);
		plain_name(heap);
		dump(all, &p->device_peak[i], p->pools.at[d->pool].peak_ticks, limit, &(struct request){ heap, d->pool, false });
		snprintf(heap + strlen(heap), sizeof(heap) - strlen(heap), " at exit");
		dump(all, &p->at_exit, process_end(all->w->session, p), limit, &(struct request){ heap, d->pool, true });
	}
}

static void process_dumps(struct perfetto *w, const struct process *p, struct symbols *y, u32 limit)
{
	static const struct request at_peak[] = { { "libc.malloc", POOL_MALLOC, false }, { "mmap", POOL_MMAP, false } };
	static const struct request at_exit[] = {
		{ "libc.malloc at exit", POOL_MALLOC, true }, { "mmap at exit", POOL_MMAP, true },
	};
	struct dump d = { .w = w, .process = p, .symbols = y };

	for (int i = 0; i < 2; i++)
		dump(&d, &p->total.at_peak, p->total.peak_ticks, limit, &at_peak[i]);
	for (int i = 0; i < 2; i++)
		dump(&d, &p->at_exit, process_end(w->session, p), limit, &at_exit[i]);
	device_dumps(&d, limit);
	stacks_free(d.stacks);
	free(d.depth);
	enc_free(&d.samples);
}

static int by_peak(const void *a, const void *b)
{
	const struct process *x = *(struct process *const *)a, *y = *(struct process *const *)b;

	if (x->total.peak != y->total.peak)
		return x->total.peak > y->total.peak ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

static u32 smaller(u32 a, u32 b)
{
	return a < b ? a : b;
}

/* A make with thousands of small processes must not outgrow the one that matters. */
void heap_dumps(struct perfetto *w, struct session *s, struct symbols *y)
{
	struct process **process = malloc((s->processes + 1) * sizeof(*process));
	u32 left = STACKS_PER_TRACE;

	if (!process)
		return;
	for (u32 i = 0; i < s->processes; i++)
		process[i] = s->process[i];
	qsort(process, s->processes, sizeof(*process), by_peak);
	for (u32 i = 0; i < s->processes; i++) {
		const struct process *p = process[i];
		u32 limit = smaller(STACKS_PER_DUMP, left / 2);

		if (limit < STACKS_AT_LEAST)
			limit = STACKS_AT_LEAST;
		process_dumps(w, p, y, limit);
		left -= smaller(left, smaller(limit, p->total.at_peak.count) + smaller(limit, p->at_exit.count));
	}
	free(process);
}
