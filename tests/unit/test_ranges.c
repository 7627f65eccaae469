/* test_ranges.c - the book of mappings against an array of pages, and the mapping events against it too. */
#include "../../collector/read/feed.h"
#include "../../collector/model/ranges.h"
#include "gen.h"
#include "tap.h"
#include <sys/mman.h>

enum { PAGES = 96, PAGE = 4096, ROUNDS = 20000 };
#define BASE 0x7f0000000000ull

/* ---- ranges alone --------------------------------------------------------------------------- */

static void test_ranges(void)
{
	struct mapping owner[4] = { { 0 } };
	struct mapping *page[PAGES] = { 0 };
	struct ranges r = { 0 };
	u64 seed = 7, bad = 0;
	u32 round, i;

	for (round = 0; round < ROUNDS; round++) {
		u32 from = gen_random(&seed) % PAGES, n = 1 + gen_random(&seed) % (PAGES - from);
		struct mapping *of = &owner[gen_random(&seed) % 4];
		bool put = gen_random(&seed) & 1;

		ranges_cut(&r, from, from + n);
		if (put)
			ranges_put(&r, (struct range) { from, from + n, of });
		for (i = from; i < from + n; i++)
			page[i] = put ? of : NULL;
		for (i = 0; i < PAGES; i++) {
			const struct range *at = ranges_find(&r, i);

			bad += (at ? at->of : NULL) != page[i];
		}
		for (i = 1; i < r.count; i++)
			bad += r.at[i - 1].end > r.at[i].start || (r.at[i - 1].end == r.at[i].start && r.at[i - 1].of == r.at[i].of);
	}
	ok(bad == 0, "%d cuts and puts agree with an array of pages, neighbours are joined", ROUNDS);
	ranges_release(&r);
}

/* ---- events ---------------------------------------------------------------------------------- */

enum state { NOTHING, RESERVED, OPEN, SOME_FILE };

static enum state page[PAGES];
static u64 now_bytes(enum state s)
{
	u64 n = 0;
	u32 i;

	for (i = 0; i < PAGES; i++)
		n += page[i] == s ? PAGE : 0;
	return n;
}

static void set(u32 from, u32 n, enum state s)
{
	while (n--)
		page[from++] = s;
}

static void protect(u32 from, u32 n, enum state was, enum state is)
{
	for (; n--; from++)
		page[from] = page[from] == was ? is : page[from];
}

/* mremap is only done to ranges of one state, as the kernel demands. */
static bool remap(struct gen *g, u64 t, u32 from, u32 n, u32 to, u32 new_n)
{
	enum state s = page[from];
	u32 i;

	for (i = 0; i < n; i++)
		if (page[from + i] != s)
			return false;
	if (s == NOTHING || to + new_n > PAGES || !new_n)
		return false;
	if (to < from + n && from < to + new_n && to != from)
		return false;
	if (to == from && new_n > n)
		for (i = n; i < new_n; i++)
			if (page[from + i] != NOTHING)
				return false;
	set(from, n, NOTHING);
	set(to, new_n, s);
	GEN_EVENT(g, t, remap, NULL, .old_addr = BASE + from * PAGE, .old_length = n * PAGE,
		  .new_addr = BASE + to * PAGE, .new_length = new_n * PAGE);
	return true;
}

static void one_event(struct gen *g, u64 t, u64 *seed)
{
	u32 from = gen_random(seed) % PAGES, n = 1 + gen_random(seed) % (PAGES - from);
	u64 addr = BASE + from * PAGE, length = n * PAGE;

	switch (gen_random(seed) % 7) {
	case 0:
		GEN_EVENT(g, t, map, NULL, .addr = addr, .length = length, .prot = PROT_READ);
		set(from, n, OPEN);
		break;
	case 1:
		GEN_EVENT(g, t, map, NULL, .addr = addr, .length = length, .prot = PROT_NONE);
		set(from, n, RESERVED);
		break;
	case 2:
		GEN_EVENT(g, t, map, "/a", .addr = addr, .length = length, .kind = MAP_KIND_FILE);
		set(from, n, SOME_FILE);
		break;
	case 3:
		GEN_EVENT(g, t, unmap, NULL, .addr = addr, .length = length - (length > 1 ? 100 : 0));
		set(from, n, NOTHING);
		break;
	case 4:
		GEN_EVENT(g, t, protect, NULL, .addr = addr, .length = length, .prot = PROT_WRITE);
		protect(from, n, RESERVED, OPEN);
		break;
	case 5:
		GEN_EVENT(g, t, protect, NULL, .addr = addr, .length = length, .prot = PROT_NONE);
		protect(from, n, OPEN, RESERVED);
		break;
	default:
		remap(g, t, from, n, gen_random(seed) % PAGES, gen_random(seed) % 20);
	}
}

static void push(void *to, const union chunk *c)
{
	struct merge *m = ((struct feed *)to)->merge;
	union chunk *copy = merge_chunk(m);

	*copy = *c;
	merge_push(m, copy);
}

static void test_events(void)
{
	struct feed f = feed_new(NULL);
	struct session *s = f.session;
	struct gen own, g;
	u64 seed = 11, t = 1000, bad = 0, peak = 0, peak_at = 0;
	const struct process *p;
	i64 held = 0;
	u32 i;

	gen_init(&own, 0, 0, 0, push, &f);
	gen_session(&own, t, 1 << 20);
	gen_flush(&own);
	gen_init(&g, 5, t, 0, push, &f);
	GEN_EVENT(&g, t, hello, "/bin/x", .pid = 5);
	for (i = 0; i < ROUNDS; i++) {
		one_event(&g, t += 10, &seed);
		if (now_bytes(OPEN) > peak) {
			peak = now_bytes(OPEN);
			peak_at = t;
		}
		if (i % 16)
			continue;
		gen_flush(&g);
		merge_advance(f.merge, t + 1);
		p = s->process[0];
		bad += (u64)p->pools.at[POOL_MMAP].now != now_bytes(OPEN);
		bad += p->pools.count > POOL_FIXED && (u64)p->pools.at[POOL_FIXED].now != now_bytes(SOME_FILE);
	}
	gen_flush(&g);
	feed_end(&f);
	p = s->process[0];
	ok(bad == 0, "%d mapping events agree with an array of pages", ROUNDS);
	ok((u64)p->total.peak == peak && p->total.peak_ticks == peak_at, "so does the peak, and its time");
	ok((u64)p->pools.at[POOL_MMAP].now == now_bytes(OPEN), "and what is left");
	for (i = 0; i < p->at_exit.count; i++)
		held += p->at_exit.at[i].pool < POOL_FIXED ? p->at_exit.at[i].bytes : 0;
	ok(held == p->total.now, "holders at the end add up to it");
	for (i = 0, held = 0; i < p->total.at_peak.count; i++)
		held += p->total.at_peak.at[i].bytes;
	ok(held == p->total.peak, "holders at the peak add up to it");
	feed_free(&f);
}

int main(void)
{
	test_ranges();
	test_events();
	return done();
}
