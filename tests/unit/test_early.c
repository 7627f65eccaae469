/*
 * test_early.c - a free whose stamp is a little older than its block's, or younger than that of the next one in the same
 * place, because two threads' clocks were read out of turn.
 */
#include "fed.h"
#include "tap.h"

enum { NEAR = 100, FAR = 1 << 15, SIZE = 64 };

static void begin(struct gen g[2])
{
	u32 i;

	fed_begin(1000, 1 << 20);
	for (i = 0; i < 2; i++) {
		gen_init(&g[i], 7, 500, i, fed_keep, NULL);
		g[i].last = 1000;
		gen_begin(&g[i], 0);
		if (!i)
			GEN_EVENT(&g[0], 1001, hello, "/bin/test", .pid = 7);
		gen_node(&g[i], 0, 0x400000 + i);
	}
}

static struct session *end(struct gen g[2])
{
	gen_flush(&g[0]);
	gen_flush(&g[1]);
	return fed_session();
}

/* A free by thread `freer` at t, a block by thread 0 `later` ticks after it; `twice`: thread 0 had one there too. */
static struct session *run(u32 freer, u64 later, u64 size, bool twice)
{
	struct gen g[2];
	u64 t = 50000;

	begin(g);
	gen_alloc(&g[0], t - 10, 0x1000, 1000, 1);
	if (twice)
		gen_alloc(&g[0], t - 5, 0x7000, 1, 1);
	gen_free(&g[freer], t, 0x7000);
	if (twice)
		gen_free(&g[!freer], t + later / 2, 0x7000);
	gen_alloc(&g[0], t + later, 0x7000, size, 1);
	gen_alloc(&g[0], t + 2 * FAR, 0x9000, 10, 1);
	return end(g);
}

/* A block by thread 0 where one of its own lies, which thread `freer` frees `later` ticks after; then thread 1 frees the new one. */
static void expect_late(const char *what, u32 freer, u64 later, u64 size, u64 unknown, u64 unseen)
{
	struct session *s;
	struct gen g[2];
	u64 t = 50000;

	begin(g);
	gen_alloc(&g[0], t - 10, 0x7000, 1000, 1);
	gen_alloc(&g[0], t, 0x7000, size, 1);
	gen_free(&g[freer], t + later, 0x7000);
	gen_free(&g[1], t + 2 * FAR, 0x7000);
	s = end(g);
	ok(s->process[0]->total.now == 0 && s->process[0]->allocs == 2 && s->process[0]->frees == 2 && s->losses.unknown_frees == unknown &&
	   s->losses.unseen_frees == unseen && s->total.peak == (size > 1000 ? (i64)size : 1000),
	   "%s: %lld bytes live, %llu unknown, %llu unseen, peak %lld", what, (long long)s->process[0]->total.now,
	   (unsigned long long)s->losses.unknown_frees, (unsigned long long)s->losses.unseen_frees, (long long)s->total.peak);
	session_free(s);
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
	expect_late("another thread's free, just after its place was taken", 1, NEAR, SIZE, 0, 0);
	expect_late("the same with a large block", 1, NEAR, 2 << 20, 0, 0);
	expect_late("another thread's free, long after", 1, FAR, SIZE, 1, 1);
	expect_late("the same thread's free: that of the new block", 0, NEAR, SIZE, 1, 1);
	free(fed.chunk);
	return done();
}
