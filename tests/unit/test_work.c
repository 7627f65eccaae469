/*
 * test_work.c - device work in flight: records in any order, records that are missing, children that go on with their
 * parent's numbers, and a million pieces of work in little memory.
 */
#include "../../collector/read/feed.h"
#include "../../collector/util/array.h"
#include "gen.h"
#include "tap.h"

#include <malloc.h>

enum { US = 1000, MS = 1000000, DEVICE = 1, QUEUE = 2, NAME = 3, MILLION = 1000000 };
#define OFFSET 123456789000ull

static struct feed feed;
static struct work told[64];
static u32 tolds, before_call, after_seen, backwards;
static u64 last_start;
static char args[2][64];                /* of works 1 and 2 */

static void push(void *to, const union chunk *c)
{
	union chunk *copy = merge_chunk(feed.merge);

	(void)to;
	*copy = *c;
	merge_push(feed.merge, copy);
}

static void hear(void *to, struct process *p, const struct work *w)
{
	(void)to, (void)p;
	if (tolds < 64)
		told[tolds] = *w;
	if (w->id <= 2 && w->args.length < sizeof(args[0]))
		memcpy(args[w->id - 1], w->args.at ? w->args.at : "", w->args.length);
	tolds++;
	before_call += w->done == DONE_TIMED && w->start_ns < w->call_begin_ns;
	after_seen += w->done == DONE_TIMED && w->end_ns > w->seen_ns;
	backwards += w->start_ns < last_start;
	last_start = w->start_ns;
}

static struct work_run shown[8];
static u32 shows;

static void hear_run(void *to, struct process *p, struct thread *t, const struct work_run *r)
{
	(void)to, (void)p, (void)t;
	if (shows < 8)
		shown[shows] = *r;
	shows++;
}

static void begin(struct gen *own, struct gen *g, u32 pid)
{
	static struct listener l = { .work = hear, .run = hear_run };

	tolds = before_call = after_seen = backwards = 0;
	last_start = 0;
	feed = feed_new(&l);
	gen_init(own, 0, 0, 0, push, NULL);
	gen_session(own, 1000, 4096);
	gen_flush(own);
	gen_init(g, pid, 2000, 0, push, NULL);
	GEN_EVENT(g, 2000, hello, "/bin/x", .pid = pid);
	GEN_EVENT(g, 2000, thread, "main", .tid = pid);
	GEN_EVENT(g, 2000, device, "OpenCL", .id = DEVICE, .clock = DEVICE_CLOCK_BOUNDED);
	GEN_EVENT(g, 2000, queue, "", .id = QUEUE, .device = DEVICE);
	GEN_EVENT(g, 2000, name, "sgemm", .id = NAME);
}

static const struct session *end(struct gen *g)
{
	gen_flush(g);
	feed_end(&feed);
	return feed.session;
}

static void work(struct gen *g, u64 t, u64 id)
{
	GEN_EVENT(g, t, work, NULL, .id = id, .queue = QUEUE, .kind = WORK_KERNEL, .name = NAME);
}

static void done_at(struct gen *g, u64 t, u64 id, u64 queued)
{
	GEN_EVENT(g, t, work_done, NULL, .id = id, .status = DONE_TIMED, .queued = queued + OFFSET, .submitted = queued + OFFSET,
		  .start = queued + OFFSET + 2 * US, .end = queued + OFFSET + 4 * US);
}

static void call(struct gen *g, u64 t, u64 from, u64 id)
{
	GEN_EVENT(g, t, call, NULL, .begin = from, .kind = CALL_ENQUEUE, .name = NAME, .work = id, .works = 1);
}

/* ---- order ------------------------------------------------------------------------------------------ */

static void any_order(void)
{
	struct gen own, g;
	const struct session *s;
	u64 t = 10 * US;

	begin(&own, &g, 70);
	work(&g, t + 3 * US, 1), call(&g, t + 4 * US, t, 1), done_at(&g, t + 10 * US, 1, t + US), t += 20 * US;
	call(&g, t + 3 * US, t, 2), work(&g, t + 4 * US, 2), done_at(&g, t + 10 * US, 2, t + US), t += 20 * US;
	done_at(&g, t + 8 * US, 3, t + US), work(&g, t + 9 * US, 3), call(&g, t + 10 * US, t, 3), t += 20 * US;
	done_at(&g, t + 8 * US, 4, t + US), call(&g, t + 9 * US, t, 4), work(&g, t + 10 * US, 4), t += 20 * US;
	work(&g, t + 3 * US, 5), done_at(&g, t + 8 * US, 5, t + US), call(&g, t + 9 * US, t, 5), t += 20 * US;
	call(&g, t + 3 * US, t, 6), done_at(&g, t + 8 * US, 6, t + US), work(&g, t + 9 * US, 6), t += 20 * US;
	work(&g, t, 6), done_at(&g, t, 6, t);           /* a number that comes again is a new piece of work */
	s = end(&g);
	ok(tolds == 7 && s->process[0]->device[0]->done[DONE_TIMED] == 7, "what, end and call in any order");
	ok(!before_call && !after_seen && !backwards, "inside of what the host saw, in order of start");
	ok(s->losses.unknown_ids == 0 && s->losses.unfinished == 0, "nothing is missing");
	feed_free(&feed);
}

/* The end of the first is told after its beginning, that of the second before. */
static void failures(void)
{
	static const char first[] = "commands=2\0error=-5", second[] = "error=-5\0commands=2";
	struct gen own, g;
	const struct session *s;
	const struct work_sum *read;

	begin(&own, &g, 69);
	GEN_EVENT(&g, 10 * US, work, "commands=2", .id = 1, .queue = QUEUE);
	GEN_EVENT(&g, 11 * US, work_done, "error=-5", .id = 1, .status = DONE_FAILED);
	GEN_EVENT(&g, 12 * US, work_done, "error=-5", .id = 2, .status = DONE_FAILED);
	GEN_EVENT(&g, 13 * US, work, "commands=2", .id = 2, .queue = QUEUE);
	for (u64 id = 3; id <= 5; id++) {
		GEN_EVENT(&g, (14 + id) * US, work, NULL, .id = id, .queue = QUEUE, .kind = WORK_READ, .bytes = id == 5 ? WORK_BYTES_UNKNOWN : 4096);
		GEN_EVENT(&g, (14 + id) * US, work_done, NULL, .id = id, .status = id == 3 ? DONE_UNTIMED : DONE_FAILED);
	}
	s = end(&g);
	read = &s->process[0]->device[0]->kind[WORK_READ];
	ok(read->calls == 3 && read->failed == 2 && read->bytes == 4096 && !read->unsized && !s->losses.unsized, "what failed moved nothing");
	ok(tolds == 5 && s->losses.failed == 4 && s->process[0]->device[0]->done[DONE_FAILED] == 4, "work that failed is counted");
	ok(!memcmp(args[0], first, sizeof(first)) && !memcmp(args[1], second, sizeof(second)), "its beginning and its end both have something to say");
	feed_free(&feed);
}

static void missing(void)
{
	struct gen own, g;
	const struct session *s;

	begin(&own, &g, 71);
	work(&g, 10 * US, 1);
	GEN_EVENT(&g, 11 * US, work, NULL, .id = 2, .queue = 999, .kind = 77, .name = 888, .site = 5);
	done_at(&g, 20 * US, 2, 12 * US);
	done_at(&g, 21 * US, 3, 13 * US);               /* nobody said what it is */
	GEN_EVENT(&g, 22 * US, call, NULL, .begin = 1, .kind = 99, .name = 777, .node = 12345, .work = 1, .works = UINT64_MAX);
	GEN_EVENT(&g, 23 * US, device_free, NULL, .id = 4444);
	GEN_EVENT(&g, 24 * US, label, "x", .what = LABEL_QUEUE, .id = 5555);
	GEN_EVENT(&g, 25 * US, device_alloc, "x", .id = 1, .device = 6666, .bytes = UINT64_MAX, .parent = 1, .heap = UINT64_MAX);
	GEN_EVENT(&g, 26 * US, device_clock, NULL, .device_id = 7777, .device = UINT64_MAX, .monotonic = UINT64_MAX, .deviation = UINT64_MAX);
	s = end(&g);
	ok(tolds == 2 && s->losses.unfinished == 1, "all that was described is told, finished or not");
	ok(s->losses.unknown_ids >= 8, "unknown numbers are counted: %llu", (unsigned long long)s->losses.unknown_ids);
	ok(s->process[0]->devices >= 2 && !strncmp(s->process[0]->device[1]->title, "unknown device", 14), "what has no device gets one: %s",
	   s->process[0]->device[1]->title);
	feed_free(&feed);
}

/* ---- what has no times of the device's ---------------------------------------------------------------------- */

/* Three that were handed over at once and seen to end one after the other. */
static const struct device *three(u32 pid, u64 flags)
{
	struct gen own, g;

	begin(&own, &g, pid);
	GEN_EVENT(&g, 2000, queue, "", .id = QUEUE + 1, .device = DEVICE, .flags = flags);
	for (u64 i = 0; i < 3; i++) {
		GEN_EVENT(&g, (10 + i) * US, work, NULL, .id = 1 + i, .queue = QUEUE + 1, .kind = WORK_KERNEL, .name = NAME);
		GEN_EVENT(&g, (10 + i) * US, work_done, NULL, .id = 1 + i, .status = DONE_OBSERVED, .start = (10 + i) * US, .end = (20 + 10 * i) * US);
	}
	return end(&g)->process[0]->device[0];
}

static void observed(void)
{
	const struct device *d = three(77, 0);

	ok(told[0].start_ns == 10 * US && told[1].start_ns == 20 * US && told[2].start_ns == 30 * US, "in a queue that keeps order each begins when the one before is over");
	ok(d->kernel[0].total_ns == 30 * US && d->busy_ns == 30 * US && d->kernel[0].max_ns == 10 * US, "the sums are of what is told: %llu ns",
	   (unsigned long long)d->kernel[0].total_ns);
	feed_free(&feed);
	d = three(78, QUEUE_OUT_OF_ORDER);
	ok(told[2].start_ns == 12 * US && d->kernel[0].total_ns == (10 + 19 + 28) * US && d->busy_ns == 30 * US, "elsewhere they may overlap");
	feed_free(&feed);
}

/* Two kernels and what they were submitted in, which is told last; then two that know of no whole. */
static void parts(void)
{
	struct gen own, g;
	const struct session *s;

	begin(&own, &g, 79);
	for (u64 id = 1; id <= 5; id++)
		GEN_EVENT(&g, 10 * US, work, NULL, .id = id, .queue = QUEUE, .kind = id == 3 ? WORK_GROUP : WORK_KERNEL, .name = NAME);
	GEN_EVENT(&g, 12 * US, call, NULL, .begin = 9 * US, .kind = CALL_SUBMIT, .name = NAME, .work = 1, .works = 5);
	for (u64 id = 1; id <= 3; id++)
		GEN_EVENT(&g, 40 * US, work_done, NULL, .id = id, .status = id == 3 ? DONE_TIMED : DONE_IN_TIMED, .start = OFFSET + 20 * US, .end = OFFSET + 30 * US);
	GEN_EVENT(&g, 41 * US, work_done, NULL, .id = 4, .status = DONE_IN_TIMED);
	GEN_EVENT(&g, 42 * US, work_done, NULL, .id = 5, .status = DONE_IN_OBSERVED, .start = 5, .end = 4);
	s = end(&g);
	ok(tolds == 5 && s->losses.untimed == 4 && s->process[0]->device[0]->done[DONE_UNTIMED] == 4, "parts of a whole have no times");
	for (u32 i = 0; i < 3; i++)
		if (told[i].kind == WORK_GROUP)
			ok(told[i].end_ns - told[i].start_ns == 10 * US && told[i + 1].id == 1 && told[i + 2].id == 2 && told[i + 1].inside && told[i + 1].start_ns == told[i].start_ns &&
			   told[i + 1].end_ns == told[i].start_ns, "they are moments in it, and come behind it in their order");
	ok(!told[0].inside + !told[1].inside + !told[2].inside + !told[3].inside + !told[4].inside == 3, "those without stamps of a whole are in none");
	ok(s->process[0]->device[0]->kernel[0].total_ns == 0 && s->process[0]->device[0]->busy_ns == 10 * US, "the time is the whole's");
	feed_free(&feed);
}

/* ---- threads that worked at it -------------------------------------------------------------------------- */

/* Ticks are nanoseconds here. */
static void runs(void)
{
	struct gen own, g;
	const struct session *s;

	begin(&own, &g, 76);
	work(&g, 10 * US, 1);
	GEN_EVENT(&g, 30 * US, run, NULL, .tid = 76, .work = 1, .name = NAME, .begin = 10 * US, .end = 20 * US, .tiles = 3, .busy = 8 * US);
	GEN_EVENT(&g, 30 * US, run, NULL, .tid = 77, .work = 1, .name = NAME, .begin = 11 * US, .end = 15 * US, .tiles = 2, .busy = 3 * US);
	GEN_EVENT(&g, 30 * US, run, NULL, .tid = 77, .work = 1, .name = NAME, .begin = 16 * US, .end = 22 * US, .tiles = 1, .busy = 5 * US, .again = 1);
	GEN_EVENT(&g, 30 * US, work_done, NULL, .id = 1, .status = DONE_OBSERVED, .start = 10 * US, .end = 22 * US);
	GEN_EVENT(&g, 40 * US, run, NULL, .tid = 5, .work = 1, .name = 888, .begin = UINT64_MAX, .end = 0, .tiles = UINT64_MAX, .busy = UINT64_MAX);
	GEN_EVENT(&g, 41 * US, run, NULL, .tid = 5, .work = 999, .name = NAME, .begin = 0, .end = UINT64_MAX, .tiles = 1, .busy = UINT64_MAX);
	s = end(&g);
	ok(tolds == 1 && told[0].tiles == 6 && told[0].tile_sum_ns == 16 * US && told[0].workers == 2, "tiles, their time and who did them");
	ok(told[0].end_ns - told[0].start_ns == 12 * US, "no call is needed for what the host saw");
	ok(s->process[0]->device[0]->kernel[0].tiles == 6 && s->process[0]->device[0]->kernel[0].tile_sum_ns == 16 * US, "summed up by name");
	ok(shows == 5 && shown[1].end - shown[1].begin == 4 * US && shown[1].busy_ns == 3 * US, "each run is told");
	ok(shown[3].begin == shown[3].end && !shown[3].busy_ns && shown[4].begin >= 2000 && shown[4].end <= 41 * US, "impossible times are cut");
	ok(s->losses.unknown_ids == 3, "unknown work and names are counted: %llu", (unsigned long long)s->losses.unknown_ids);
	feed_free(&feed);
}

/* ---- children ----------------------------------------------------------------------------------------- */

static void children(void)
{
	struct gen own, g, child;
	const struct session *s;
	const struct device *d;

	begin(&own, &g, 72);
	work(&g, 10 * US, 1), call(&g, 11 * US, 9 * US, 1);
	GEN_EVENT(&g, 12 * US, child, NULL, .pid = 73, .how = CHILD_FORK, .followed = 1);
	gen_flush(&g);
	gen_init(&child, 73, 13 * US, 0, push, NULL);
	GEN_EVENT(&child, 13 * US, hello, "/bin/x", .pid = 73, .ppid = 72, .flags = HELLO_FORKED, .parent = 2000);
	work(&child, 14 * US, 2), call(&child, 15 * US, 14 * US, 2), done_at(&child, 20 * US, 2, 14 * US);
	done_at(&child, 21 * US, 1, 10 * US);           /* the parent's, which the child never handed over */
	gen_flush(&child);
	done_at(&g, 30 * US, 1, 10 * US);
	s = end(&g);
	ok(s->processes == 2 && s->process[1]->devices == 1, "a child knows its parent's devices");
	d = s->process[1]->devices ? s->process[1]->device[0] : s->process[0]->device[0];
	ok(!strcmp(d->title, "OpenCL 0") && d->process == 1 && d->kernels == 1 && !strcmp(d->kernel[0].name, "sgemm"), "and its names");
	ok(s->losses.unknown_ids == 1, "what it never told of is counted: %llu", (unsigned long long)s->losses.unknown_ids);
	ok(s->process[0]->device[0]->done[DONE_TIMED] == 1, "the parent goes on");
	feed_free(&feed);
}

/* ---- many ----------------------------------------------------------------------------------------------- */

/* 20 in flight at a time, the clock 30 ppm slow. */
static void million(void)
{
	struct gen own, g;
	const struct session *s;
	size_t before, most = 0;
	u64 t = 10 * US;

	begin(&own, &g, 74);
	before = mallinfo2().uordblks;
	for (u64 id = 1; id <= MILLION; id++, t += 10 * US) {
		work(&g, t + 3 * US, id);
		call(&g, t + 4 * US, t, id);
		if (id > 20) {
			u64 queued = t - 200 * US + 2 * US, slow = queued - queued * 30 / 1000000;

			done_at(&g, t + 9 * US, id - 20, slow);
		}
		if (id % 1000 == 0) {
			gen_flush(&g);
			merge_advance(feed.merge, t + 9 * US);
		}
		if (id % 100000 == 0 && mallinfo2().uordblks - before > most)
			most = mallinfo2().uordblks - before;
	}
	ok(most < 8 << 20, "a million pieces of work take %zu KiB", most >> 10);
	s = end(&g);
	ok(tolds == MILLION && s->losses.unfinished == 20, "all are told, the last 20 as unfinished");
	ok(s->process[0]->device[0]->kernel[0].total_ns == (MILLION - 20) * 2ull * US, "and summed up");
	ok(!before_call && !after_seen, "inside of what the host saw");
	ok(backwards < 21, "in order of start (%u are not)", backwards);
	ok(s->process[0]->device[0]->match.residual_ns <= 4 * US, "residual %llu ns, %.1f ppm", (unsigned long long)s->process[0]->device[0]->match.residual_ns,
	   s->process[0]->device[0]->match.rate_ppm);
	feed_free(&feed);
}

/* Calls that never come do not keep their work for ever. */
static void no_calls(void)
{
	struct gen own, g;
	const struct session *s;
	size_t before;
	u64 t = 10 * US;

	begin(&own, &g, 75);
	before = mallinfo2().uordblks;
	for (u64 id = 1; id <= 100000; id++, t += 10 * US) {
		work(&g, t, id), done_at(&g, t + 9 * US, id, t);
		if (id % 1000 == 0) {
			gen_flush(&g);
			merge_advance(feed.merge, t + 9 * US);
		}
	}
	ok(mallinfo2().uordblks - before < 16 << 20, "100 thousand without a call take %zu KiB", (mallinfo2().uordblks - before) >> 10);
	s = end(&g);
	ok(tolds == 100000 && s->losses.unfinished == 0, "and are all told");
	feed_free(&feed);
}

int main(void)
{
	any_order();
	failures();
	missing();
	observed();
	parts();
	runs();
	children();
	million();
	no_calls();
	return done();
}
