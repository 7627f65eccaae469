/*
 * test_session.c - the whole model against a plain one: several processes and threads that allocate, free, resize
 * and map; who held the peak; and that nothing depends on how the records arrived.
 */
#include "../../collector/read/feed.h"
#include "../../collector/util/array.h"
#include "gen.h"
#include "tap.h"
#include <sys/mman.h>

enum { PROCESSES = 3, THREADS = 4, SLOTS = 300, STACKS = 40, RECORDS = 200000, MAPS = 8 };

struct row { i64 bytes, blocks; };

struct truth {
	i64 now, peak;
	u64 peak_ticks;
	struct row at_peak[PROCESSES][2][STACKS + 1];
};

struct block { u64 size; u32 node; };

struct program {
	struct gen g[THREADS];
	struct block block[SLOTS];
	u64 map_bytes[MAPS];
	u32 map_node[MAPS];
	struct row row[2][STACKS + 1];
	struct truth truth;
	u64 allocs, frees, allocated, last_alloc[THREADS], temporary;
};

static struct program program[PROCESSES];
static struct truth tree;

static union chunk *all;
static u32 alls, all_room;

static void keep(void *to, const union chunk *c)
{
	(void)to;
	ARRAY_ROOM(all, all_room, alls + 1);
	all[alls++] = *c;
}

/* ---- the plain model ------------------------------------------------------------------------------ */

static void step(struct program *p, u64 t, i64 bytes)
{
	u32 i;

	p->truth.now += bytes;
	tree.now += bytes;
	if (p->truth.now > p->truth.peak) {
		p->truth.peak = p->truth.now;
		p->truth.peak_ticks = t;
		memcpy(p->truth.at_peak[p - program], p->row, sizeof(p->row));
	}
	if (tree.now > tree.peak) {
		tree.peak = tree.now;
		tree.peak_ticks = t;
		for (i = 0; i < PROCESSES; i++)
			memcpy(tree.at_peak[i], program[i].row, sizeof(program[i].row));
	}
}

static void move(struct program *p, u32 pool, u32 node, i64 bytes, i64 blocks)
{
	p->row[pool][node].bytes += bytes;
	p->row[pool][node].blocks += blocks;
}

static u64 slot_addr(u32 i)
{
	return 0x7f0000000000 + i * 0x1000;
}

static void make(struct program *p, u32 thread, u32 i, u64 t, u64 size, u32 node)
{
	gen_alloc(&p->g[thread], t, slot_addr(i), size, node);
	p->block[i] = (struct block) { size, node };
	move(p, 0, node, (i64)size, 1);
	step(p, t, (i64)size);
	p->allocs++;
	p->allocated += size;
	p->last_alloc[thread] = i + 1;
}

static void drop(struct program *p, u32 thread, u32 i, u64 t)
{
	struct block b = p->block[i];

	gen_free(&p->g[thread], t, slot_addr(i));
	p->block[i].node = 0;
	move(p, 0, b.node, -(i64)b.size, -1);
	step(p, t, -(i64)b.size);
	p->frees++;
	p->temporary += p->last_alloc[thread] == i + 1;
	p->last_alloc[thread] = 0;
}

static void resize(struct program *p, u32 thread, u32 i, u64 *t, u64 size, u32 node)
{
	struct block b = p->block[i];

	gen_leave(&p->g[thread], *t, slot_addr(i));
	*t += 5;
	gen_enter(&p->g[thread], *t, slot_addr(i), size, node);
	p->block[i] = (struct block) { size, node };
	move(p, 0, b.node, -(i64)b.size, -1);
	move(p, 0, node, (i64)size, 1);
	step(p, *t, (i64)size - (i64)b.size);
	p->allocs++;
	p->frees++;
	p->allocated += size;
	p->last_alloc[thread] = i + 1;
}

static void remap(struct program *p, u32 thread, u32 i, u64 t, u64 bytes, u32 node)
{
	u64 addr = 0x600000000000 + i * 0x10000000ull;

	bytes = (bytes + 4095) & ~4095ull;
	p->last_alloc[thread] = 0;
	if (p->map_bytes[i]) {
		GEN_EVENT(&p->g[thread], t, unmap, NULL, .addr = addr, .length = p->map_bytes[i]);
		move(p, 1, p->map_node[i], -(i64)p->map_bytes[i], -1);
		step(p, t, -(i64)p->map_bytes[i]);
		p->map_bytes[i] = 0;
		return;
	}
	GEN_EVENT(&p->g[thread], t, map, NULL, .addr = addr, .length = bytes, .prot = PROT_READ, .node = node);
	p->map_bytes[i] = bytes;
	p->map_node[i] = node;
	move(p, 1, node, (i64)bytes, 1);
	step(p, t, (i64)bytes);
}

/* ---- the records ------------------------------------------------------------------------------------ */

static void begin_program(u32 i, u64 t)
{
	struct program *p = &program[i];
	u32 j, k;

	for (j = 0; j < THREADS; j++) {
		gen_init(&p->g[j], 100 + i, t, j, keep, NULL);
		if (!j)
			GEN_EVENT(&p->g[j], t, hello, "/bin/x", .pid = 100 + i, .ppid = i ? 100 : 1);
		GEN_EVENT(&p->g[j], t, thread, "worker", .tid = 1000 + j);
		for (k = 0; k < STACKS; k++)
			gen_node(&p->g[j], k, 0x400000 + k * 16);
		gen_flush(&p->g[j]);
	}
}

static void one_record(u64 *t, u64 *seed)
{
	u64 r = gen_random(seed);
	struct program *p = &program[r % PROCESSES];
	u32 thread = (r >> 8) % THREADS, i = (r >> 16) % SLOTS, node = 1 + (r >> 32) % STACKS;
	u64 size = gen_random(seed) % 5000;

	*t += 1 + (r >> 40) % 3000;
	if (r >> 50 == 0)
		remap(p, thread, (u32)size % MAPS, *t, 20 * size + 1, node);
	else if (!p->block[i].node)
		make(p, thread, i, *t, size, node);
	else if (size % 10 == 0)
		resize(p, thread, i, t, size, node);
	else
		drop(p, thread, i, *t);
	if (p->block[i].node && size % 4 == 1) {
		*t += 7;
		drop(p, thread, i, *t);
	}
}

static u64 generate(void)
{
	struct gen own;
	u64 seed = 4242, t = 2000;
	u32 i, j;

	gen_init(&own, 0, 0, 0, keep, NULL);
	gen_session(&own, 1000, 4096);
	gen_flush(&own);
	for (i = 0; i < PROCESSES; i++)
		begin_program(i, t);
	for (i = 0; i < RECORDS; i++)
		one_record(&t, &seed);
	for (i = 0; i < PROCESSES; i++)
		for (j = 0; j < THREADS; j++)
			gen_flush(&program[i].g[j]);
	GEN_EVENT(&own, t + 10, died, NULL, .pid = 100, .born = 2000, .how = DIED_EXITED, .code = 7);
	gen_flush(&own);
	return t;
}

/* ---- running it --------------------------------------------------------------------------------------- */

static u64 heard;

static void mix(u64 x)
{
	heard = (heard ^ x) * 0x9e3779b97f4a7c15ull;
	heard ^= heard >> 29;
}

static void hear_point(void *to, struct process *p, enum curve_kind c, u64 ticks, i64 bytes)
{
	(void)to;
	mix(p ? p->pid : 1);
	mix(c);
	mix(ticks);
	mix((u64)bytes);
}

static void hear_process(void *to, struct process *p)
{
	(void)to;
	mix(p->pid);
}

/* The newest time before which everything has been pushed. */
static u64 certain(u32 pushed)
{
	u64 least = UINT64_MAX;
	u32 i;

	for (i = pushed; i < alls; i++)
		if (all[i].head.t0 < least)
			least = all[i].head.t0;
	return least;
}

static struct session *run(u32 every)
{
	struct listener l = { .point = hear_point, .process = hear_process };
	struct feed f = feed_new(&l);
	struct merge *m = f.merge;
	u32 i;

	heard = 0;
	for (i = 0; i < alls; i++) {
		union chunk *c = merge_chunk(m);

		*c = all[i];
		merge_push(m, c);
		if (every && i % every == 0)
			merge_advance(m, certain(i + 1));
	}
	feed_end(&f);
	merge_free(f.merge);
	return f.session;
}

/* ---- comparing ------------------------------------------------------------------------------------------ */

static u32 rows_differ(const struct holder_list *l, const struct session *s, const struct truth *t, u32 first, u32 last)
{
	struct row seen[PROCESSES][2][STACKS + 1];
	u32 i, j, k, bad = 0;

	memset(seen, 0, sizeof(seen));
	for (i = 0; i < l->count; i++) {
		const struct holder *h = &l->at[i];
		const struct process *p = s->process[h->process];
		u32 node = h->node ? (u32)(p->node[h->node].pc - 0x400000) / 16 + 1 : 0;

		seen[p->pid - 100][h->pool][node] = (struct row) { h->bytes, h->blocks };
		bad += i && l->at[i - 1].bytes < h->bytes;
	}
	for (i = first; i <= last; i++)
		for (j = 0; j < 2; j++)
			for (k = 0; k <= STACKS; k++)
				bad += memcmp(&seen[i][j][k], &t->at_peak[i][j][k], sizeof(struct row)) != 0;
	return bad;
}

static const struct process *process_of(const struct session *s, u32 pid)
{
	u32 i;

	for (i = 0; i < s->processes; i++)
		if (s->process[i]->pid == pid)
			return s->process[i];
	return NULL;
}

static void compare_process(const struct session *s, u32 i)
{
	const struct process *p = process_of(s, 100 + i);
	const struct program *q = &program[i];
	u32 bad;

	ok(p->total.peak == q->truth.peak && p->total.peak_ticks == q->truth.peak_ticks, "process %u: peak and its time", i);
	ok(p->total.now == q->truth.now, "process %u: live at the end", i);
	ok(p->allocs == q->allocs && p->frees == q->frees && p->allocated_bytes == q->allocated, "process %u: counts", i);
	ok(p->temporary == q->temporary, "process %u: temporary (%llu)", i, (unsigned long long)q->temporary);
	bad = rows_differ(&p->total.at_peak, s, &q->truth, i, i);
	ok(bad == 0, "process %u: who held the peak", i);
}

/* Every large block of the plain model's end is an open span. */
static void compare_spans(const struct session *s)
{
	u64 want = 0, open = 0;
	u32 i, j, bad = 0;

	for (i = 0; i < PROCESSES; i++) {
		for (j = 0; j < SLOTS; j++)
			want += program[i].block[j].node && program[i].block[j].size >= 4096;
		for (j = 0; j < MAPS; j++)
			want += program[i].map_bytes[j] != 0;
	}
	for (i = 0; i < s->spans; i++) {
		open += !s->span[i].died;
		bad += s->span[i].size < 4096 || (i && s->span[i - 1].born > s->span[i].born);
		bad += s->span[i].died && s->span[i].died < s->span[i].born;
		bad += s->span[i].tid < 1000 || s->span[i].tid >= 1000 + THREADS;
	}
	ok(open == want && !bad, "spans: %u, %llu of them open", s->spans, (unsigned long long)want);
}

int main(void)
{
	static const u32 ways[] = { 1, 3, 50, 1000 };
	struct session *s;
	u64 first;
	u32 i;

	generate();
	s = run(0);
	first = heard;
	ok(s->total.peak == tree.peak && s->total.peak_ticks == tree.peak_ticks, "tree: peak and its time");
	ok(rows_differ(&s->total.at_peak, s, &tree, 0, PROCESSES - 1) == 0, "tree: who held the peak");
	for (i = 0; i < PROCESSES; i++)
		compare_process(s, i);
	compare_spans(s);
	ok(s->losses.late == 0 && s->losses.unknown_frees == 0 && s->losses.records == 0 && s->losses.stacks == 0, "nothing was lost");
	ok(process_of(s, 100)->died == DIED_EXITED && process_of(s, 100)->code == 7, "how a process ended");
	ok(process_of(s, 101)->parent == process_of(s, 100), "whose child it was");
	session_free(s);
	for (i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		s = run(ways[i]);
		ok(heard == first && s->total.peak == tree.peak, "the same is heard when windows end every %u chunks", ways[i]);
		session_free(s);
	}
	free(all);
	return done();
}
