/*
 * perfetto_heap.c - heap profiles: who held the memory at a process's peak and at its end.
 *
 *   libc.malloc           blocks live at the process's own peak of malloc + anonymous mappings
 *   mmap                  anonymous mappings at the same moment
 *   libc.malloc at exit   what was left, with everything ever allocated as "total"
 *   mmap at exit
 *
 * Each is one dump on a sequence of its own: a second dump on a sequence would be taken as a difference to the
 * first. A dump may be spread over packets; all but the last say `continued`.
 */
#include "perfetto.h"

enum {
	PROFILE_DUMPS = 5, PROFILE_CONTINUED = 6, PROFILE_INDEX = 7,
	DUMP_PID = 1, DUMP_SAMPLE = 2, DUMP_TIMESTAMP = 9, DUMP_HEAP_NAME = 11,
	SAMPLE_CALLSTACK = 1, SAMPLE_ALLOCATED = 2, SAMPLE_FREED = 3, SAMPLE_ALLOCS = 5, SAMPLE_FREES = 6,
};

enum {
	STACKS_PER_DUMP = 20000,        /* beyond this small ones are put together */
	STACKS_PER_TRACE = 60000,       /* shared by the dumps of many processes ... */
	STACKS_AT_LEAST = 400,          /* ... of which each gets so many */
	FOLDED_MAX = 1000,              /* groups that small stacks are put into */
	PACKET_BYTES = 256 << 10,
};

static const char small_stacks[] = "[small stacks]";

struct dump {
	struct perfetto *w;
	const struct process *process;
	struct symbols *symbols;
	struct stacks *stacks;
	const char *heap;
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
	enc_text(e, DUMP_HEAP_NAME, d->heap);
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

static void add_amount(struct amount *to, const struct amount *a)
{
	to->allocated += a->allocated;
	to->freed += a->freed;
	to->allocs += a->allocs;
	to->frees += a->frees;
}

/* ---- small stacks ------------------------------------------------------------------ */

/* The frame of a stack that is `depth` frames from the outermost, or the stack itself if it is shorter. */
static u32 ancestor(const struct process *p, u32 node, u32 depth)
{
	u32 length = 0, up = node;

	for (; up && up < p->nodes; up = p->node[up].parent)
		length++;
	for (; length > depth; length--)
		node = p->node[node].parent;
	return node;
}

struct fold {
	u32 node;
	struct amount sum;
};

/* Puts rows under what their stacks have in common at `depth`; returns the number of groups, FOLDED_MAX + 1 if too many. */
static u32 fold_at(const struct process *p, const struct holder **row, u32 rows, u32 depth, bool run,
		   struct fold *fold, u32 *group_of)
{
	u32 groups = 0;

	memset(group_of, 0, ((size_t)p->nodes + 1) * sizeof(*group_of));
	for (u32 i = 0; i < rows; i++) {
		u32 node = ancestor(p, row[i]->node, depth), *group = &group_of[node < p->nodes ? node : 0];
		struct amount a = run ? run_amount(row[i]) : live_amount(row[i]);

		if (!*group && groups == FOLDED_MAX)
			return FOLDED_MAX + 1;
		if (!*group) {
			fold[groups] = (struct fold){ .node = node };
			*group = ++groups;
		}
		add_amount(&fold[*group - 1].sum, &a);
	}
	return groups;
}

/* Tries long common prefixes first. Depth 0 is one group for all, so this ends. */
static void add_folded(struct dump *d, const struct holder **row, u32 rows, bool run)
{
	struct fold *fold = calloc(FOLDED_MAX, sizeof(*fold));
	u32 *group_of = calloc((size_t)d->process->nodes + FOLDED_MAX, sizeof(*group_of));
	u32 groups = FOLDED_MAX + 1;

	for (u32 depth = 64; fold && group_of && groups > FOLDED_MAX; depth /= 2)
		groups = fold_at(d->process, row, rows, depth, run, fold, group_of);
	if (!fold || !group_of)
		groups = 0;
	for (u32 i = 0; i < groups; i++)
		group_of[i] = fold[i].node;
	symbols_prepare(d->symbols, d->process, group_of, groups);
	for (u32 i = 0; i < groups; i++)
		add_sample(d, stacks_callstack(d->stacks, fold[i].node, small_stacks), &fold[i].sum);
	free(fold);
	free(group_of);
}

/* How many of the largest rows are drawn one by one. */
static u32 rows_kept(const struct holder **row, u32 rows, u32 limit)
{
	u64 all = 0, sum = 0;
	u32 kept = 0;

	if (rows <= limit)
		return rows;
	for (u32 i = 0; i < rows; i++)
		all += row[i]->bytes > 0 ? row[i]->bytes : 0;
	for (; kept < limit && sum < all - all / 1000; kept++)
		sum += row[kept]->bytes > 0 ? row[kept]->bytes : 0;
	return kept;
}

/* ---- dumps ------------------------------------------------------------------------- */

static void add_rows(struct dump *d, const struct holder **row, u32 rows, u32 limit, bool run)
{
	u32 kept = rows_kept(row, rows, limit);

	for (u32 i = 0; i < kept; i++) {
		struct amount a = run ? run_amount(row[i]) : live_amount(row[i]);

		add_sample(d, stacks_callstack(d->stacks, row[i]->node, NULL), &a);
	}
	if (kept < rows)
		add_folded(d, row + kept, rows - kept, run);
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

static void prepare(struct symbols *y, const struct process *p, const struct holder **row, u32 rows)
{
	u32 *node = malloc((rows + 1) * sizeof(*node));

	for (u32 i = 0; node && i < rows; i++)
		node[i] = row[i]->node;
	if (node)
		symbols_prepare(y, p, node, rows);
	free(node);
}

struct request {
	const char *heap;
	u32 pool;
	bool run;                       /* everything ever allocated, not only what lives */
};

static void dump(struct perfetto *w, const struct process *p, struct symbols *y, const struct holder_list *list,
		 u64 ticks, u32 limit, const struct request *what)
{
	const struct holder **row = malloc((list->count + 1) * sizeof(*row));
	u32 rows = row ? rows_of_pool(list, what->pool, row) : 0;
	struct dump d = { .w = w, .process = p, .symbols = y, .heap = what->heap, .ns = ns_of(w, ticks) };

	if (rows) {
		prepare(y, p, row, rows_kept(row, rows, limit));
		d.stacks = stacks_new(y, p);
	}
	if (d.stacks) {
		d.sequence = w->next_sequence++;
		add_rows(&d, row, rows, limit, what->run);
	}
	stacks_free(d.stacks);
	enc_free(&d.samples);
	free(row);
}

void heap_dumps(struct perfetto *w, struct session *s, struct symbols *y)
{
	static const struct request at_peak[] = { { "libc.malloc", POOL_MALLOC, false }, { "mmap", POOL_MMAP, false } };
	static const struct request at_exit[] = {
		{ "libc.malloc at exit", POOL_MALLOC, true }, { "mmap at exit", POOL_MMAP, true },
	};
	u32 limit = s->processes ? STACKS_PER_TRACE / (2 * s->processes) : 0;

	if (limit > STACKS_PER_DUMP)
		limit = STACKS_PER_DUMP;
	if (limit < STACKS_AT_LEAST)
		limit = STACKS_AT_LEAST;
	for (u32 i = 0; i < s->processes; i++) {
		const struct process *p = s->process[i];

		for (int j = 0; j < 2; j++)
			dump(w, p, y, &p->total.at_peak, p->total.peak_ticks, limit, &at_peak[j]);
		for (int j = 0; j < 2; j++)
			dump(w, p, y, &p->at_exit, process_end(s, p), limit, &at_exit[j]);
	}
}
