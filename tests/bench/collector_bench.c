/*
 * collector_bench.c - ns a record of reader, merge and model, from memory.
 *
 *   collector_bench [THREADS [LIVE [STACKS [RECORDS]]]]
 *
 * Threads toggle random slots: an empty one gets a block, a full one loses it. With LIVE 0, blocks die at once.
 */
#include "../../collector/read/feed.h"
#include "../unit/gen.h"
#include <stdio.h>
#include <time.h>

static union chunk *all;
static size_t count, room;

static void keep(void *to, const union chunk *c)
{
	(void)to;
	if (count == room)
		all = realloc(all, (room = room ? room * 2 : 1024) * sizeof(*all));
	all[count++] = *c;
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static void generate(u32 threads, u64 live, u32 stacks, u64 records)
{
	struct gen own, *g = calloc(threads, sizeof(*g));
	u64 *slot = calloc(live ? live * 2 : 1, sizeof(*slot)), *spare = calloc(live * 2 + 1, sizeof(*spare));
	u64 seed = 88172645463325252ull, t = 1000, i, spares = live * 2;
	u32 j;

	for (i = 0; i < live * 2; i++)
		spare[i] = 0x7f0000000000 + i * 64;
	gen_init(&own, 0, 0, 0, keep, NULL);
	gen_session(&own, t, 1 << 20);
	gen_flush(&own);
	for (j = 0; j < threads; j++) {
		gen_init(&g[j], 1, 100, j, keep, NULL);
		g[j].last = t;
		gen_begin(&g[j], 0);
		if (!j)
			GEN_EVENT(&g[0], t, hello, "/bin/test", .pid = 1);
		for (i = 0; i < stacks; i++)
			gen_node(&g[j], i ? (u32)(gen_random(&seed) % i) : 0, 0x400000 + i * 4);
	}
	for (i = 0; i < records; i++) {
		u64 r = gen_random(&seed), x = live ? r % (live * 2) : 0;
		struct gen *at = &g[(r >> 40) % threads];
		u32 node = 1 + (r >> 20) % stacks;

		t += 40 + (r >> 50) % 64;
		if (!live) {
			gen_alloc(at, t, 0x7f0000000000, 64, node);
			gen_free(at, t + 30, 0x7f0000000000);
			i++;
			t += 30;
		} else if (slot[x]) {
			gen_free(at, t, slot[x]);
			spare[spares++] = slot[x];
			slot[x] = 0;
		} else {
			slot[x] = spare[--spares];
			gen_alloc(at, t, slot[x], 16 + (r >> 30) % 512, node);
		}
	}
	for (j = 0; j < threads; j++)
		gen_flush(&g[j]);
	free(g);
	free(slot);
	free(spare);
}

/* No record to come is older: every thread's newest chunk began here or later. */
static u64 certain(const u64 *newest, u32 threads)
{
	u64 least = UINT64_MAX;
	u32 i;

	for (i = 0; i < threads; i++)
		least = newest[i] < least ? newest[i] : least;
	return least;
}

static void push_all(struct merge *m, u32 threads)
{
	u64 newest[1024] = { 0 };
	size_t i;

	for (i = 0; i < count; i++) {
		union chunk *c = merge_chunk(m);

		*c = all[i];
		merge_push(m, c);
		if (all[i].head.pid)
			newest[all[i].head.slot] = all[i].head.t0;
		if (i % 256 == 255)     /* a megabyte, as a live recording would */
			merge_advance(m, certain(newest, threads));
	}
}

static void run_once(u32 threads)
{
	struct feed f = feed_new(NULL);
	const struct session *s = f.session;
	double before = seconds(), after;

	push_all(f.merge, threads);
	feed_end(&f);
	after = seconds();
	printf("%.1f ns/record  %llu records  peak %lld  live %llu blocks  late %llu unknown %llu\n",
	       (after - before) * 1e9 / (double)s->events, (unsigned long long)s->events, (long long)s->total.peak,
	       (unsigned long long)s->live_blocks, (unsigned long long)s->losses.late, (unsigned long long)s->losses.unknown_frees);
	feed_free(&f);
}

int main(int argc, char **argv)
{
	u32 threads = argc > 1 ? (u32)atoi(argv[1]) % 1024 : 1, stacks = argc > 3 ? (u32)atoi(argv[3]) : 1000;
	u64 live = argc > 2 ? (u64)atoll(argv[2]) : 256, records = argc > 4 ? (u64)atoll(argv[4]) : 8000000;
	int i;

	generate(threads, live, stacks, records);
	for (i = 0; i < 3; i++)
		run_once(threads);
	free(all);
	return 0;
}
