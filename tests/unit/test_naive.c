/*
 * test_naive.c - chunks to books against a naive model, on many small random worlds.
 *
 * A world has processes that begin, fork and end, threads that take turns in bursts of any length, and records that are
 * hard to take: equal times, frees that come early or never, reallocs with others between their halves, blocks at and
 * around every limit, addresses that share one group of the live table. Each is run several times, with chunks that were
 * peeked at and windows that end anywhere. `test_naive SEED` runs one world, `test_naive FIRST END` those.
 */
#include "../../collector/model/live.h"
#include "../../collector/read/feed.h"
#include "gen.h"
#include "naive.h"
#include "tap.h"
#include <sys/mman.h>

enum { WORLDS = 1500, HIGH_ADDRS = ADDRS - 4, TID = 1000, PC = 0x400000 };

struct writer {                         /* of one stream */
	struct gen g;
	u64 last_t, pos;
	u32 tie, last_alloc;            /* addr + 1 */
	u32 number[ROWS];               /* of nodes */
	bool in_realloc;
};

struct image_of {
	u32 pid;
	u64 born;
	bool open, live[ADDRS];
	u64 freed[ADDRS];
	struct writer w[THREADS];
};

static struct {
	u64 seed, t, last_t, large;
	u32 images, records, step, burst, addrs;
	u32 oddness;                    /* 0: none; the higher, the less */
	bool crowded, ties;             /* ties: records of one time */
	struct image_of image[IMAGES];
	struct gen own;
	u32 begun;
	struct op *op;
	u32 ops, op_room;
	union chunk *chunk;
	u32 chunks, chunk_room;
} world;

static u32 dice(u32 n)
{
	return (u32)(gen_random(&world.seed) >> 20) % n;
}

static void keep(void *to, const union chunk *c)
{
	(void)to;
	ARRAY_ROOM(world.chunk, world.chunk_room, world.chunks + 1);
	world.chunk[world.chunks++] = *c;
}

/* ---- addresses and sizes ----------------------------------------------------------------------------- */

static u64 crowd[ADDRS];                /* all in one group of one small live table */

static void find_crowd(void)
{
	u64 addr = 0x10000;
	u32 n = 0;

	for (; n < ADDRS; addr += 16)
		if (live_hash(addr) >> 60 == 5 && (live_hash(addr) >> 28 & 0x30) == 0x10)
			crowd[n++] = addr;
}

static u64 addr_of(u32 i)
{
	if (i >= HIGH_ADDRS)
		return 0x900000000000 + i * 16;
	return world.crowded ? crowd[i] : 0x7f0000000000ull + i * 0x40;
}

static u64 any_size(void)
{
	static const u64 limit[] = { 1, 4096, 1 << 20, PACKED_SIZE_LIMIT - 1, PACKED_SIZE_LIMIT, PACKED_SIZE_LIMIT * 8 };

	if (!world.oddness || dice(8))
		return dice(2000);
	return (dice(2) && world.large ? world.large : limit[dice(sizeof(limit) / sizeof(*limit))]) - 1 + dice(3);
}

/* ---- records ------------------------------------------------------------------------------------------- */

static void tick(void)
{
	world.t += !world.ties + dice(world.step + 1);
	if (!dice(2000))
		world.t += dice(2) ? 3000000 : 5ull << 40;
}

/* One record of a stream, and what place it has among those of the same time. */
static struct op *add_op(u32 image, u32 thread, enum op_kind kind, u32 addr, u64 size, u32 stack)
{
	struct writer *w = &world.image[image].w[thread];
	u32 class = kind != FREE && kind != LEAVE && kind != UNMAP;

	w->tie = class | (w->last_t == world.t ? w->tie : 0);
	w->last_t = world.last_t = world.t;
	ARRAY_ROOM(world.op, world.op_room, world.ops + 1);
	world.op[world.ops] = (struct op) {
		.t = world.t, .order = (u64)w->tie << 60 | (u64)(image + 1) << 50 | (u64)thread << 40 | w->pos++,
		.kind = kind, .image = image, .thread = thread, .addr = addr, .size = size, .stack = stack,
	};
	return &world.op[world.ops++];
}

static u32 node_for(struct writer *w, u32 stack)
{
	if (stack && !w->number[stack])
		w->number[stack] = gen_node(&w->g, 0, PC + stack * 16);
	return w->number[stack];
}

static void birth(u32 image, u32 thread, u32 addr, bool moved)
{
	struct writer *w = &world.image[image].w[thread];
	u64 size = any_size();
	u32 stack = dice(ROWS), node = node_for(w, stack);

	if (addr >= HIGH_ADDRS || size >= PACKED_SIZE_LIMIT)
		GEN_EVENT(&w->g, world.t, block, NULL, .addr = addr_of(addr), .size = size, .node = node, .moved = moved);
	else if (moved)
		gen_enter(&w->g, world.t, addr_of(addr), size, node);
	else
		gen_alloc(&w->g, world.t, addr_of(addr), size, node);
	add_op(image, thread, moved ? ENTER : ALLOC, addr, size, stack);
	w->last_alloc = addr + 1;
	world.image[image].live[addr] = true;
}

static void death(u32 image, u32 thread, u32 addr, bool moved)
{
	struct writer *w = &world.image[image].w[thread];
	struct op *o = add_op(image, thread, moved ? LEAVE : FREE, addr, 0, 0);

	o->temporary = !moved && addr < HIGH_ADDRS && w->last_alloc == addr + 1;
	w->last_alloc = 0;
	if (addr >= HIGH_ADDRS)
		GEN_EVENT(&w->g, world.t, gone, NULL, .addr = addr_of(addr), .moved = moved);
	else if (moved)
		gen_leave(&w->g, world.t, addr_of(addr));
	else
		gen_free(&w->g, world.t, addr_of(addr));
	world.image[image].live[addr] = false;
	world.image[image].freed[addr] = world.t;
}

static void map(u32 image, u32 thread, u32 addr, bool on)
{
	struct writer *w = &world.image[image].w[thread];
	u64 place = 0x600000000000 + addr * 0x10000000ull, size = 4096ull << 3 * addr;
	u32 stack = dice(ROWS), node = node_for(w, stack);

	w->last_alloc = 0;
	if (on)
		GEN_EVENT(&w->g, world.t, map, NULL, .addr = place, .length = size, .prot = PROT_READ, .node = node);
	else
		GEN_EVENT(&w->g, world.t, unmap, NULL, .addr = place, .length = 0x10000000);
	add_op(image, thread, on ? MAP : UNMAP, addr, size, stack);
}

/* ---- processes ------------------------------------------------------------------------------------------- */

static void begin_image(void)
{
	u32 i = world.begun++, j, before = i ? dice(i) : 0;
	struct image_of *m = &world.image[i];
	bool again = i && !world.image[before].open;

	tick();
	world.t++;                      /* no two are born at once */
	m->pid = again ? world.image[before].pid : 100 + i;
	m->born = world.t;
	m->open = true;
	for (j = 0; j < THREADS; j++) {
		gen_init(&m->w[j].g, m->pid, m->born, j, keep, NULL);
		if (!j)
			GEN_EVENT(&m->w[j].g, world.t, hello, "/bin/x", .pid = m->pid, .ppid = 1, .flags = i % 3 == 2 ? HELLO_FORKED : 0);
		GEN_EVENT(&m->w[j].g, world.t, thread, "worker", .tid = TID + j);
		m->w[j].last_t = world.t;
		m->w[j].tie = 1;
	}
	world.last_t = world.t;
}

static void end_image(u32 i)
{
	struct image_of *m = &world.image[i];
	u32 j;

	for (j = 0; j < THREADS; j++)
		gen_flush(&m->w[j].g);
	tick();
	world.t++;                      /* nobody ends when it is born */
	GEN_EVENT(&world.own, world.t, died, NULL, .pid = m->pid, .born = m->born, .how = DIED_EXITED);
	gen_flush(&world.own);
	m->w[0].tie = m->w[0].last_t = 0;
	add_op(i, 0, DIED, 0, 0, 0)->order = 1ull << 60;
	m->open = false;
}

/* ---- a world ----------------------------------------------------------------------------------------------- */

static void make_or_drop(u32 image, u32 thread, u32 addr)
{
	if (world.image[image].live[addr])
		death(image, thread, addr, false);
	else
		birth(image, thread, addr, false);
}

/* One in so many steps is this, in a world that has such. */
static bool chance(u32 in)
{
	return world.oddness && !dice(in * world.oddness);
}

static void one_step(u32 image, u32 thread)
{
	struct image_of *m = &world.image[image];
	u32 addr = dice(world.addrs);

	tick();
	if (m->w[thread].in_realloc) {
		m->w[thread].in_realloc = false;
		birth(image, thread, addr, true);
	} else if (m->live[addr] && chance(6)) {
		death(image, thread, addr, true);
		m->w[thread].in_realloc = true;
	} else if (chance(50))
		map(image, thread, dice(MAPS), dice(2));
	else if (chance(50) && (m->live[addr] || m->freed[addr] + 2 * NEAR < world.t))  /* early, or unknown, or fine */
		death(image, (thread + 1) % THREADS, addr, false);
	else if (chance(50))            /* perhaps where one is */
		birth(image, thread, addr, false);
	else
		make_or_drop(image, thread, addr);
	if (m->live[addr] && !m->w[thread].in_realloc && chance(3)) {
		tick();
		death(image, thread, addr, false);
	}
	if (!dice(100))                 /* peeked at */
		keep(NULL, &m->w[thread].g.chunk);
	else if (!dice(30))
		gen_flush(&m->w[thread].g);
}

static u32 any_open(void)
{
	u32 i = dice(world.begun);

	while (!world.image[i].open)
		i = (i + 1) % world.begun;
	return i;
}

static u32 opens(void)
{
	u32 i, n = 0;

	for (i = 0; i < world.begun; i++)
		n += world.image[i].open;
	return n;
}

static void burst(void)
{
	u32 image = any_open(), thread = dice(THREADS), left = 1 + dice(world.burst);

	while (left--)
		one_step(image, thread);
}

static void choose_world(u64 seed)
{
	static const u32 step[] = { 1, 3, 50, 5000 }, burst[] = { 1, 4, 16, 17, 100 };
	static const u64 large[] = { 0, 1, 600, 4096, 1 << 20, PACKED_SIZE_LIMIT + 5 };

	free(world.op);
	free(world.chunk);
	memset(&world, 0, sizeof(world));
	world.seed = (seed + 1) * 0x9e3779b97f4a7c15ull;
	world.t = 2000;
	world.images = 1 + dice(IMAGES);
	world.records = 200 + dice(3000);
	world.step = step[dice(4)];
	world.burst = burst[dice(5)];
	world.large = large[dice(6)];
	world.addrs = 4 + dice(ADDRS - 3);
	world.crowded = dice(2);
	world.ties = !dice(4);
	world.oddness = dice(4) * dice(4);
}

static void make_world(u64 seed)
{
	u32 i, j;

	choose_world(seed);
	gen_init(&world.own, 0, 0, 0, keep, NULL);
	gen_session(&world.own, 1000, world.large);
	gen_flush(&world.own);
	begin_image();
	while (world.ops < world.records) {
		if (world.begun < world.images && !dice(30))
			begin_image();
		if (opens() > 1 && !dice(60))
			end_image(any_open());
		burst();
	}
	for (i = 0; i < world.begun; i++)
		for (j = 0; j < THREADS; j++)
			gen_flush(&world.image[i].w[j].g);
}

/* ---- the naive model ------------------------------------------------------------------------------------------ */

static struct naive naive;

static int by_order(const void *a, const void *b)
{
	const struct op *x = a, *y = b;

	if (x->t != y->t)
		return x->t < y->t ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static void run_naive(void)
{
	u32 i;

	naive_free_all(&naive);
	memset(&naive, 0, sizeof(naive));
	naive.large = world.large ? world.large : 1;    /* a block of no bytes is never drawn */
	for (i = 0; i < IMAGES; i++)
		naive.p[i].forked = i % 3 == 2;
	for (i = 0; i < world.begun; i++)
		naive.p[i].begun = true;
	qsort(world.op, world.ops, sizeof(*world.op), by_order);
	for (i = 0; i < world.ops; i++)
		naive_take(&naive, &world.op[i]);
	for (i = 0; i < IMAGES; i++)
		naive_end(&naive, &naive.p[i], world.last_t);
}

/* ---- the real one ----------------------------------------------------------------------------------------------- */

static u32 wrong_points;
static i64 highest[IMAGES][CURVES], highest_of_tree;

static u32 image_of(const struct process *p)
{
	u32 i;

	for (i = 0; i < world.begun; i++)
		if (world.image[i].pid == p->pid && world.image[i].born == p->born)
			return i;
	return IMAGES;
}

/* A point is a value that the sum had at this time, or had come to just before. */
static bool had(const struct sum *s, u64 t, i64 bytes)
{
	u32 low = 0, high = s->values, i;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (s->value[mid].t <= t)
			low = mid + 1;
		else
			high = mid;
	}
	for (i = low; i > 0; i--) {
		if (s->value[i - 1].bytes == bytes)
			return true;
		if (s->value[i - 1].t < t)
			return false;
	}
	return !bytes;
}

static void hear_point(void *to, struct process *p, enum curve_kind c, u64 ticks, i64 bytes)
{
	u32 i = p ? image_of(p) : 0;
	const struct naive_process *n = &naive.p[i];
	const struct sum *s = !p ? &naive.total : c == CURVE_MALLOC ? &n->malloc : c == CURVE_MMAP ? &n->mmap : &n->total;
	i64 *most = p ? &highest[i][c] : &highest_of_tree;

	(void)to;
	wrong_points += !had(s, ticks, bytes);
	*most = bytes > *most ? bytes : *most;
}

/* Everything before this has been pushed. */
static u64 certain(u32 pushed)
{
	u64 least = UINT64_MAX;

	for (; pushed < world.chunks; pushed++)
		if (world.chunk[pushed].head.t0 < least)
			least = world.chunk[pushed].head.t0;
	return least;
}

static struct session *run_real(u32 every)
{
	struct listener l = { .point = hear_point };
	struct feed f = feed_new(&l);
	u32 i;

	wrong_points = 0;
	highest_of_tree = 0;
	memset(highest, 0, sizeof(highest));
	for (i = 0; i < world.chunks; i++) {
		union chunk *c = merge_chunk(f.merge);

		*c = world.chunk[i];
		merge_push(f.merge, c);
		if (every && i % every == 0)
			merge_advance(f.merge, certain(i + 1));
	}
	feed_end(&f);
	merge_free(f.merge);
	return f.session;
}

/* ---- comparing ---------------------------------------------------------------------------------------------------- */

static u32 seeds_wrong;

static bool wrong(u64 seed, const char *what, u32 who, bool is)
{
	if (is && ++seeds_wrong < 20)
		printf("# world %llu: %s of %u\n", (unsigned long long)seed, what, who);
	return is;
}

static bool rows_differ(const struct session *s, const struct holder_list *l, const struct rows *want, u32 first, u32 end)
{
	struct rows seen[IMAGES];
	u32 i;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < l->count; i++) {
		const struct process *p = s->process[l->at[i].process];
		u32 stack = l->at[i].node ? (u32)(p->node[l->at[i].node].pc - PC) / 16 : 0;

		seen[image_of(p)].at[l->at[i].pool][stack] = (struct held_row) { l->at[i].bytes, l->at[i].blocks };
	}
	return memcmp(&seen[first], want, (end - first) * sizeof(*want));
}

static bool sum_differs(const struct sum *n, i64 peak, u64 peak_t)
{
	return n->peak != peak || n->peak_t != peak_t;
}

static u32 compare_process(u64 seed, const struct session *s, u32 i)
{
	const struct naive_process *n = &naive.p[i];
	const struct process *p = NULL;
	const struct pool *m;
	u32 j, bad = 0;

	for (j = 0; j < s->processes; j++)
		if (image_of(s->process[j]) == i)
			p = s->process[j];
	if (wrong(seed, "existence", i, !p))
		return 1;
	m = &p->pools.at[POOL_MALLOC];
	bad += wrong(seed, "peak", i, sum_differs(&n->total, p->total.peak, p->total.peak_ticks) || n->total.now != p->total.now);
	bad += wrong(seed, "malloc", i, sum_differs(&n->malloc, m->peak, m->peak_ticks) || n->malloc.now != m->now);
	bad += wrong(seed, "mmap", i, sum_differs(&n->mmap, p->pools.at[POOL_MMAP].peak, p->pools.at[POOL_MMAP].peak_ticks));
	bad += wrong(seed, "allocs", i, n->allocs != p->allocs || n->allocated != p->allocated_bytes);
	bad += wrong(seed, "frees", i, n->frees != p->frees || n->temporary != p->temporary);
	bad += wrong(seed, "unseen frees", i, n->unseen != p->unseen_frees);
	bad += wrong(seed, "unknown frees", i, n->unknown != (n->forked ? p->inherited_frees : p->unknown_frees));
	bad += wrong(seed, "holders of the peak", i, rows_differ(s, &p->total.at_peak, &n->at_peak, i, i + 1));
	bad += wrong(seed, "holders at exit", i, rows_differ(s, &p->at_exit, &n->row, i, i + 1));
	bad += wrong(seed, "curves", i, highest[i][CURVE_TOTAL] != n->total.peak || highest[i][CURVE_MALLOC] != n->malloc.peak);
	return bad;
}

static u32 naive_addr(const struct span *p)
{
	u32 i;

	if (p->pool == POOL_MMAP)
		return ADDRS + (u32)((p->addr - 0x600000000000) / 0x10000000);
	for (i = 0; i < ADDRS && addr_of(i) != p->addr; i++)
		;
	return i;
}

static bool same_span(const struct session *s, const struct span *p, const struct naive_span *n)
{
	const struct process *of = s->process[p->process];

	return p->born == n->born && p->died == n->died && p->size == n->size && image_of(of) == n->image && naive_addr(p) == n->addr &&
	       p->tid == TID + n->thread && (p->node ? of->node[p->node].pc : PC) == PC + n->stack * 16ull;
}

/* Several may begin at one time: each is looked for among those. */
static u32 compare_spans(u64 seed, const struct session *s)
{
	u32 i, j, bad = s->spans != naive.spans;

	for (i = 0; i < s->spans && !bad; i++) {
		for (j = 0; j < naive.spans && !same_span(s, &s->span[i], &naive.span[j]); j++)
			;
		bad += j == naive.spans;
		if (j < naive.spans)
			naive.span[j].image |= 1u << 31;        /* taken */
	}
	for (j = 0; j < naive.spans; j++)
		naive.span[j].image &= ~(1u << 31);
	return wrong(seed, "spans", s->spans, bad);
}

static u32 compare(u64 seed, const struct session *s)
{
	const struct pool *m = &s->pools.at[POOL_MALLOC];
	u32 i, bad = 0;

	bad += wrong(seed, "processes", s->processes, s->processes != world.begun);
	for (i = 0; i < world.begun && !bad; i++)
		bad += compare_process(seed, s, i);
	bad += wrong(seed, "peak of all", 0, sum_differs(&naive.total, s->total.peak, s->total.peak_ticks));
	bad += wrong(seed, "malloc of all", 0, sum_differs(&naive.malloc, m->peak, m->peak_ticks));
	bad += wrong(seed, "holders of all", 0, rows_differ(s, &s->total.at_peak, naive.at_peak, 0, IMAGES));
	bad += wrong(seed, "curve of all", 0, highest_of_tree != naive.total.peak);
	bad += wrong(seed, "points", wrong_points, wrong_points != 0);
	bad += wrong(seed, "lateness", (u32)s->losses.late, s->losses.late || s->losses.bad_chunks || s->losses.records);
	return bad + compare_spans(seed, s);
}

int main(int argc, char **argv)
{
	static const u32 ways[] = { 0, 1, 7 };
	u64 first = argc > 1 ? strtoull(argv[1], NULL, 0) : 0, seed;
	u64 end = argc > 2 ? strtoull(argv[2], NULL, 0) : argc > 1 ? first + 1 : WORLDS;
	u32 bad = 0, skipped = 0, i;

	find_crowd();
	for (seed = first; seed < end; seed++) {
		make_world(seed);
		run_naive();
		skipped += naive.ambiguous;
		for (i = 0; i < sizeof(ways) / sizeof(*ways) && !naive.ambiguous; i++) {
			struct session *s = run_real(ways[i]);

			bad += compare(seed, s) != 0;
			session_free(s);
		}
	}
	ok(bad == 0, "%llu random worlds: both models say the same", (unsigned long long)(end - first));
	ok(skipped < 1 + (end - first) / 2, "%u of them were too ambiguous to say", skipped);
	naive_free_all(&naive);
	free(world.op);
	free(world.chunk);
	return done();
}
