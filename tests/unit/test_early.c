/*
 * test_early.c - a free whose stamp is a little older than its block's, because two threads' clocks were read out of turn.
 */
#include "../../collector/read/feed.h"
#include "../../collector/util/array.h"
#include "gen.h"
#include "tap.h"

enum { NEAR = 100, FAR = 1 << 15, SIZE = 64 };

static union chunk *all;
static u32 alls, all_room;

static void keep(void *to, const union chunk *c)
{
	(void)to;
	ARRAY_ROOM(all, all_room, alls + 1);
	all[alls++] = *c;
}

/* A free by thread `freer` at t, a block by thread 0 `later` ticks after it; `twice`: thread 0 had one there too. */
static struct session *run(u32 freer, u64 later, u64 size, bool twice)
{
	struct feed f = feed_new(NULL);
	struct gen own, g[2];
	u64 t = 50000;
	u32 i;

	alls = 0;
	gen_init(&own, 0, 0, 0, keep, NULL);
	gen_session(&own, 1000, 1 << 20);
	gen_flush(&own);
	for (i = 0; i < 2; i++) {
		gen_init(&g[i], 7, 500, i, keep, NULL);
		g[i].last = 1000;
		gen_begin(&g[i], 0);
		if (!i)
			GEN_EVENT(&g[0], 1001, hello, "/bin/test", .pid = 7);
		gen_node(&g[i], 0, 0x400000 + i);
	}
	gen_alloc(&g[0], t - 10, 0x1000, 1000, 1);
	if (twice)
		gen_alloc(&g[0], t - 5, 0x7000, 1, 1);
	gen_free(&g[freer], t, 0x7000);
	if (twice)
		gen_free(&g[!freer], t + later / 2, 0x7000);
	gen_alloc(&g[0], t + later, 0x7000, size, 1);
	gen_alloc(&g[0], t + 2 * FAR, 0x9000, 10, 1);
	for (i = 0; i < 2; i++)
		gen_flush(&g[i]);
	for (i = 0; i < alls; i++) {
		union chunk *c = merge_chunk(f.merge);

		*c = all[i];
		merge_push(f.merge, c);
	}
	feed_end(&f);
	merge_free(f.merge);
	return f.session;
}

static void expect(const char *what, u32 freer, u64 later, u64 size, i64 live, u64 unknown, u64 frees)
{
	struct session *s = run(freer, later, size, frees > 1);

	ok(s->process[0]->total.now == live + 1010 && s->losses.unknown_frees == unknown && s->process[0]->frees == frees &&
	   s->total.peak == (i64)size + (live ? 1010 : 1000),
	   "%s: %lld bytes live, %llu unknown, peak %lld", what, (long long)s->process[0]->total.now, (unsigned long long)s->losses.unknown_frees,
	   (long long)s->total.peak);
	session_free(s);
}

int main(void)
{
	expect("another thread's free, just before", 1, NEAR, SIZE, 0, 0, 1);
	expect("the same with a large block", 1, NEAR, 2 << 20, 0, 0, 1);
	expect("another thread's free, long before", 1, FAR, SIZE, SIZE, 1, 0);
	expect("the same thread's free: another block was there", 0, NEAR, SIZE, SIZE, 1, 0);
	expect("this thread's and then another's, of which that one was too early", 0, NEAR, SIZE, 0, 0, 2);
	expect("another thread's free, even before that of the block that lay there", 1, NEAR, SIZE, 0, 0, 2);
	free(all);
	return done();
}
