/* test_merge.c - many streams become one in time order, whatever way they came. */
#include "../../collector/read/merge.h"
#include "../../collector/util/array.h"
#include "gen.h"
#include "tap.h"

enum { STREAMS = 40, RECORDS = 60000 };

/* ---- what comes out --------------------------------------------------------------------------- */

struct seen {
	u64 ticks, addr;
	bool free;
};

static struct seen *seen;
static u32 seens, seen_room;

static void note(u64 ticks, u64 addr, bool is_free)
{
	ARRAY_ROOM(seen, seen_room, seens + 1);
	seen[seens++] = (struct seen) { ticks, addr, is_free };
}

static void take(void *to, const struct window *w)
{
	u32 i;

	(void)to;
	for (i = 0; i < w->count; i++) {
		const struct rec *r = &w->rec[w->key[i] & KEY_INDEX_MASK];
		u64 ticks = w->base + (w->key[i] >> KEY_TIME_SHIFT);

		if (r->a & REC_PLAIN)
			note(ticks, r->a & PACKED_ADDR_MASK, true);
		else if (w->extra[r->w].kind == EXTRA_ALLOC)
			note(ticks, w->extra[r->w].addr, false);
	}
}

static void ignore_early(void *to, const struct event *e)
{
	(void)to, (void)e;
}

static struct merge *new_merge(void)
{
	seens = 0;
	return merge_new((struct sink) { NULL, take, ignore_early });
}

/* ---- what goes in ------------------------------------------------------------------------------ */

static union chunk *queue[STREAMS][RECORDS];
static u32 queued[STREAMS], pushed[STREAMS];

static void enqueue(void *to, const union chunk *c)
{
	union chunk *copy = must(malloc(sizeof(*copy)));
	u32 i = (u32)(size_t)to;

	*copy = *c;
	queue[i][queued[i]++] = copy;
}

static void clear(void)
{
	u32 j;

	for (j = 0; j < STREAMS; j++) {
		while (queued[j])
			free(queue[j][--queued[j]]);
		pushed[j] = 0;
	}
}

static void push(struct merge *m, const union chunk *c)
{
	union chunk *copy = merge_chunk(m);

	*copy = *c;
	merge_push(m, copy);
}

/* The first `up` records of a chunk of frees, as a peek would have found them. */
static void push_part(struct merge *m, const union chunk *c, u32 up)
{
	union chunk part = *c;

	if (up > USED_UP(c->head.used))
		return;
	part.head.used = USED_STEP(up, 0);
	push(m, &part);
}

static u64 *stamp;

/* Records carry their number as address. Streams are busy now and then, one of them nearly never. */
static void generate(u32 streams, u32 step, bool allocs)
{
	static struct gen g[STREAMS];
	u64 seed = 99 + streams, t = 1000, i;
	u32 j, busy = 0;

	stamp = must(realloc(stamp, RECORDS * sizeof(*stamp)));
	clear();
	for (j = 0; j < streams; j++)
		gen_init(&g[j], 9, 900, j, enqueue, (void *)(size_t)j);
	for (i = 0; i < RECORDS; i++) {
		if (gen_random(&seed) % 50 == 0)
			busy = gen_random(&seed) % streams;
		j = i % 20000 == 5 ? streams - 1 : gen_random(&seed) % 3 ? busy : gen_random(&seed) % streams;
		t += gen_random(&seed) % step;
		stamp[i] = t;
		if (allocs && gen_random(&seed) % 2)
			gen_alloc(&g[j], t, i << 3, 0, 0);
		else
			gen_free(&g[j], t, i << 3);
	}
	for (j = 0; j < streams; j++)
		gen_flush(&g[j]);
}

static u64 certain(u32 streams)
{
	u64 least = UINT64_MAX;
	u32 j;

	for (j = 0; j < streams; j++)
		if (pushed[j] < queued[j] && queue[j][pushed[j]]->head.t0 < least)
			least = queue[j][pushed[j]]->head.t0;
	return least;
}

/* Chunks in any order that keeps each stream's own, with advances in between as far as is certain. */
static struct intake_counts run(u32 streams, u64 seed, bool peeks)
{
	struct merge *m = new_merge();
	struct intake_counts counts;
	u32 left = 0, j;

	for (j = 0; j < streams; j++) {
		pushed[j] = 0;
		left += queued[j];
	}
	while (left) {
		j = gen_random(&seed) % streams;
		if (pushed[j] == queued[j])
			continue;
		if (peeks) {
			push_part(m, queue[j][pushed[j]], gen_random(&seed) % 60);
			push_part(m, queue[j][pushed[j]], gen_random(&seed) % 300);
		}
		push(m, queue[j][pushed[j]++]);
		left--;
		if (gen_random(&seed) % 3 == 0)
			merge_advance(m, certain(streams));
	}
	merge_advance(m, UINT64_MAX);
	counts = merge_counts(m);
	merge_free(m);
	return counts;
}

static bool in_order(void)
{
	u32 i;

	if (seens != RECORDS)
		return false;
	for (i = 0; i < seens; i++)
		if (seen[i].ticks != stamp[i] || (i && seen[i - 1].ticks > seen[i].ticks))
			return false;
	return true;
}

static void test_streams(u32 streams, u32 step, bool peeks)
{
	struct intake_counts c;

	generate(streams, step, false);
	c = run(streams, 5, peeks);
	ok(in_order() && !c.late && !c.bad_chunks && c.records >= RECORDS, "%u streams, steps below %u%s", streams, step, peeks ? ", peeked at" : "");
}

/* ---- ties --------------------------------------------------------------------------------------- */

static void test_ties(void)
{
	struct seen *first;
	u32 n;

	generate(12, 3, true);
	run(12, 5, false);
	n = seens;
	first = must(malloc(n * sizeof(*first)));
	memcpy(first, seen, n * sizeof(*first));
	ok(n == RECORDS, "all records of streams with equal times are there");
	run(12, 77, false);
	ok(seens == n && !memcmp(first, seen, n * sizeof(*first)), "their order does not depend on where windows end");
	free(first);
}

static void test_order_in_stream(void)
{
	struct merge *m = new_merge();
	struct gen g;
	u32 i;

	clear();
	gen_init(&g, 9, 900, 0, enqueue, NULL);
	gen_alloc(&g, 1000, 8, 0, 0);
	gen_free(&g, 1000, 16);
	gen_alloc(&g, 1000, 24, 0, 0);
	gen_flush(&g);
	gen_init(&g, 9, 900, 1, enqueue, (void *)1);
	gen_free(&g, 1000, 32);
	gen_flush(&g);
	push(m, queue[0][0]);
	push(m, queue[1][0]);
	merge_advance(m, UINT64_MAX);
	ok(seens == 4 && seen[0].addr == 32, "a free of another stream comes before an alloc of the same time");
	for (i = 1; i < 4; i++)
		ok(seen[i].addr == i * 8, "and a stream keeps its order (%u)", i);
	merge_free(m);
}

/* ---- late and lost --------------------------------------------------------------------------------- */

static void test_late(void)
{
	struct merge *m;
	struct gen g;

	clear();
	gen_init(&g, 9, 900, 0, enqueue, NULL);
	gen_free(&g, 5000, 8);
	gen_flush(&g);
	gen_init(&g, 9, 900, 1, enqueue, (void *)1);
	gen_free(&g, 950, 40);
	gen_flush(&g);
	gen_free(&g, 1000, 16);
	gen_free(&g, 1001, 24);
	gen_free(&g, 9000, 32);
	gen_flush(&g);
	m = new_merge();
	push(m, queue[0][0]);
	push(m, queue[1][0]);
	merge_advance(m, 6000);
	push(m, queue[1][1]);
	merge_advance(m, UINT64_MAX);
	ok(merge_counts(m).late == 2, "two records came late");
	ok(seens == 5 && seen[2].ticks == 6000 && seen[3].ticks == 6000 && seen[4].ticks == 9000, "and were taken at once");
	merge_free(m);
}

static void test_lost(void)
{
	struct merge *m = new_merge();
	struct stream *s;
	struct gen g;

	clear();
	gen_init(&g, 9, 900, 0, enqueue, NULL);
	gen_node(&g, 0, 0x10);
	gen_free(&g, 1000, 8);
	gen_flush(&g);
	gen_node(&g, 1, 0x20);
	gen_free(&g, 2000, 16);
	gen_flush(&g);
	gen_node(&g, 2, 0x30);
	gen_free(&g, 3000, 24);
	g.chunk.head.lost = 1;
	gen_flush(&g);
	push(m, queue[0][0]);
	push(m, queue[0][2]);
	merge_advance(m, UINT64_MAX);
	s = merge_find(m, 9, 900, 0);
	ok(merge_counts(m).lost == 1 && seens == 2, "a chunk is missing and counted");
	ok(stream_node(s, 1) && !stream_node(s, 2) && stream_node(s, 3), "its node is unknown, those around it are not");
	ok(s->pc[stream_node(s, 3)] == 0x30, "and have the right address");
	push(m, queue[0][1]);
	ok(merge_counts(m).records == 2, "a chunk that comes after its successor is not taken");
	merge_free(m);
}

/* Numbers begin afresh: those before are forgotten, but not before the window they were last used in is over. */
static void test_afresh(void)
{
	struct merge *m = new_merge();
	struct stream *s;
	struct gen g;
	u32 i, before, room;

	clear();
	gen_init(&g, 9, 900, 0, enqueue, NULL);
	for (i = 1; i <= 100; i++)
		gen_node(&g, i - 1, 0x1000 + i);
	gen_alloc(&g, 1000, 8, 1, 100);
	gen_event(&g, 1001, EVENT_unmapped_code, NULL, 0, NULL);
	gen_node(&g, 0, 0x2001);
	gen_node(&g, 101, 0x2002);
	gen_alloc(&g, 1002, 16, 1, 102);
	gen_flush(&g);
	gen_node(&g, 102, 0x2003);              /* this chunk is lost */
	gen_free(&g, 2000, 16);
	gen_flush(&g);
	gen_node(&g, 102, 0x2004);
	gen_alloc(&g, 3000, 24, 1, 104);
	g.chunk.head.lost = 1;
	gen_flush(&g);
	push(m, queue[0][0]);
	merge_advance(m, 1500);
	s = merge_find(m, 9, 900, 0);
	ok(stream_node(s, 100) && s->pc[stream_node(s, 100)] == 0x1064 && s->pc[stream_node(s, 102)] == 0x2002, "all are known at first");
	before = s->nodes;
	push(m, queue[0][2]);
	merge_advance(m, 3500);
	ok(s->nodes == before - 100 + 1, "old ones are gone with the next window");
	ok(!stream_node(s, 1) && !stream_node(s, 100) && !stream_node(s, 103), "and are not known any more");
	ok(s->pc[stream_node(s, 101)] == 0x2001 && s->pc[stream_node(s, 102)] == 0x2002 && s->pc[stream_node(s, 104)] == 0x2004, "the others are");
	ok(s->parent[stream_node(s, 104)] == 102 && s->label[s->nodes] == LABEL_NONE && !stream_node(s, 105), "with all that belongs to them");
	room = s->node_room;
	for (i = 0; i < 1000; i++) {
		clear();
		gen_event(&g, 4000 + 10 * i, EVENT_unmapped_code, NULL, 0, NULL);
		for (u32 n = 0; n < 50; n++)
			gen_node(&g, n ? g.nodes : 0, 0x3000 + i);
		gen_alloc(&g, 4001 + 10 * i, 32, 1, g.nodes);
		gen_flush(&g);
		push(m, queue[0][0]);
		merge_advance(m, 4005 + 10 * i);
	}
	ok(s->pc[stream_node(s, g.nodes)] == 0x3000 + 999, "a thousand times afresh: the last one is known");
	ok(s->runs <= 3 && s->node_room <= 2 * room, "and nothing has piled up: %u runs, room for %u nodes", s->runs, s->node_room);
	merge_free(m);
}

/* Numbers that have come far begin at 1 again. */
static void test_restart(void)
{
	struct merge *m = new_merge();
	struct stream *s;
	struct gen g;

	clear();
	gen_init(&g, 9, 900, 0, enqueue, NULL);
	g.nodes = NODE_RESTART;
	g.chunk.head.node_base = g.nodes + 1;
	gen_node(&g, 0, 0x11);
	gen_node(&g, NODE_RESTART + 1, 0x12);
	gen_alloc(&g, 1000, 8, 1, NODE_RESTART + 2);
	gen_event(&g, 1001, EVENT_unmapped_code, NULL, 0, NULL);
	gen_flush(&g);
	g.nodes = 0;
	g.chunk.head.node_base = 1;
	gen_node(&g, 0, 0x21);
	gen_node(&g, 1, 0x22);
	gen_alloc(&g, 1002, 16, 1, 2);
	gen_flush(&g);
	gen_node(&g, 2, 0x23);
	gen_alloc(&g, 5000, 24, 1, 3);
	gen_flush(&g);
	push(m, queue[0][0]);
	push(m, queue[0][1]);
	merge_advance(m, 2000);
	s = merge_find(m, 9, 900, 0);
	ok(merge_counts(m).bad_chunks == 0 && seens == 2, "chunks with numbers from 1 on again are taken");
	ok(s->pc[stream_node(s, NODE_RESTART + 2)] == 0x12 && s->pc[stream_node(s, 2)] == 0x22, "old and new numbers are known");
	push(m, queue[0][2]);
	merge_advance(m, 6000);
	ok(!stream_node(s, NODE_RESTART + 2) && s->pc[stream_node(s, 1)] == 0x21 && s->pc[stream_node(s, 3)] == 0x23, "then only the new ones");
	ok(s->runs == 2 && s->nodes == 4, "in one run");
	merge_free(m);
}

/* ---- two versions of one chunk ------------------------------------------------------------------------ */

static union chunk version(u32 nodes, u32 base)
{
	union chunk c;
	struct gen g;

	clear();
	gen_init(&g, 9, 900, 0, enqueue, NULL);
	while (nodes--)
		gen_node(&g, 0, 0x10);
	gen_free(&g, 1000, 8);
	while (USED_UP(g.chunk.head.used) < 60)
		gen_alloc(&g, 1001, 16, 1, 0);
	g.chunk.head.node_base = base;
	gen_flush(&g);
	c = *queue[0][0];
	return c;
}

static bool refuses(union chunk first, u32 taken, union chunk second)
{
	struct merge *m = new_merge();
	bool refused;

	first.head.used = USED_STEP(taken, taken - 1);
	push(m, &first);
	push(m, &second);
	merge_advance(m, UINT64_MAX);
	refused = merge_counts(m).bad_chunks == 1;
	merge_free(m);
	return refused;
}

static void test_versions(void)
{
	ok(!refuses(version(5, 1), 6, version(5, 1)), "a chunk that has grown is taken from where it was");
	ok(refuses(version(5, 1), 6, version(4, 1)), "one whose beginning has changed is refused");
	ok(refuses(version(5, 1), 6, version(5, 0)), "and one whose nodes have other numbers");
}

int main(void)
{
	test_streams(1, 50, false);
	test_streams(2, 50, false);
	test_streams(4, 50, true);
	test_streams(9, 50, true);
	test_streams(STREAMS, 50, true);
	test_streams(STREAMS, 5000, false);
	test_ties();
	test_order_in_stream();
	test_late();
	test_lost();
	test_afresh();
	test_restart();
	test_versions();
	clear();
	free(seen);
	free(stamp);
	return done();
}
