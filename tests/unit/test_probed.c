/*
 * test_probed.c - probed calls by their roles, from records to the model, to a trace and to the summaries.
 *
 *   test_probed X.perfetto-trace       also leaves the trace there, and the summaries beside it (e2e tests look at them)
 *
 * Libraries: "blas", which computes on the calling thread; "card", with a queue, command buffers and memory of its own, so
 * dispatch, submit and wait; "clock", which tells its device's times; "plain", which does all before it returns; "lib", with a
 * heap, a counter, marks and a decoding loop; "mt", with command buffers on queues, and memory that has holders.
 */
#include "../../collector/probe/probe.h"
#include "../../collector/util/array.h"
#include "../../collector/write/writer.h"
#include "pushed.h"
#include "tap.h"
#include "written.h"

#include <fcntl.h>
#include <unistd.h>

enum { US = 1000, MS = 1000000, BORN = 2 * MS, PID = 60 };

enum {
	SGEMM = 1, MALLOC, FREE, REGISTER, PIPELINE, SET, LAUNCH, COMMIT, WAIT, WAIT_ALL, COPY,
	CLOCK_RUN, CLOCK_WAIT, CLOCK_TIME, PLAIN_RUN, EVAL, LIB_ALLOC, LIB_RELEASE, DECODE, LEVEL, NOTE, MAYBE, ENTRY, WORKER, STEP, PART,
	MT_ALLOC, MT_INSIDE, MT_RETAIN, MT_RELEASE, MT_LABEL, MT_RUN, MT_COMMIT, MT_WAIT, MT_POLL, MT_TIME,
	PACE_DESCRIBE, PACE_RUN, PACE_DO, PACE_WAIT, SITES,
};

static const char rows[] =
	"#preset blas\n"
	"cblas_sgemm span name=\"sgemm {M}x{N}x{K}\" M=$arg4:s32 N=$arg5:s32 K=$arg6:s32 flops=2*M*N*K stack=8\n"
	"#file card.probes\n"
	"cardMalloc alloc heap=card size=$arg2 label=$arg3:string ptr=+0($arg1):ptr@ret ok=$retval:s32==0 own=1\n"
	"cardFree free heap=card ptr=$arg1\n"
	"cardRegister bind key=$arg2 name=$arg4:string\n"
	"cardPipeline alias from=$arg2 key=$retval\n"
	"cardSet set key=$arg1 val=$arg2 entry\n"
	"cardLaunch dispatch name=name(cur($arg1)) gx=$arg2 gy=$arg3 queue=$arg4 depth=$arg5 lx=64\n"
	"cardCommit submit queue=$arg1\n"
	"cardWait wait queue=$arg1 ok=$retval:s32==0\n"
	"cardWaitAll wait\n"
	"cardCopy copy bytes=$arg3 dir=h2d\n"
	"#file clock.probes\n"
	"clockRun dispatch name=\"run\" of=$arg1\n"
	"clockWait wait of=$arg1\n"
	"clockTimes time of=$arg1 start=$farg1 end=$farg2\n"
	"#file plain.probes\n"
	"plainRun dispatch name=\"plain {n}\" n=$arg1 queue=$arg2\n"
	"#file lib.probes\n"
	"_ZN3lib4evalEii span\n"
	"libAlloc alloc heap=lib ptr=$retval size=$arg1\n"
	"libRelease free heap=lib ptr=$arg1 any=1\n"
	"libDecode span rate_tokens=$arg1\n"
	"libLevel counter name=\"level\" value=$arg1\n"
	"libNote mark name=\"epoch {n}\" n=$arg1\n"
	"libMaybe span when=$arg1>0\n"
	"libEntry span entry\n"
	"libWorker thread name=\"worker {n}\" n=$arg1 entry\n"
	"libStep span tokens=$arg1\n"
	"libPart span tokens=$arg1\n"
	"#file mt.probes\n"
	"mtAlloc alloc heap=mt ptr=$arg1 size=$arg2\n"
	"mtInside alloc heap=mt ptr=$arg1 size=$arg2 in=$arg3\n"
	"mtRetain retain heap=mt ptr=$arg1\n"
	"mtRelease free heap=mt ptr=$arg1 any=1\n"
	"mtLabel bind key=$arg1 name=$arg2:string heap=mt\n"
	"mtRun dispatch name=\"kernel {n}\" n=$arg1 of=$arg2 queue=$arg3\n"
	"mtCommit submit of=$arg1 queue=$arg2\n"
	"mtWait wait of=$arg1 queue=$arg2\n"
	"mtPoll wait queue=$arg1 over=$arg2\n"
	"mtTime time of=$arg1 start=$farg1 end=$farg2\n"
	"#file pace.probes\n"
	"paceDescribe bind key=$arg1 name=\"kernel {n}\" n=$arg1 flops=$arg2 bytes=1\n"
	"paceRun dispatch what=$arg1 queue=$arg2 name=name(what) flops=cur(what,flops)\n"
	"paceDo dispatch what=$arg1 queue=$arg2 name=name(what) flops=cur(what,flops) wait=1\n"
	"paceWait wait queue=$arg1\n";

static const char *const symbols[SITES] = {
	[SGEMM] = "cblas_sgemm", [MALLOC] = "cardMalloc", [FREE] = "cardFree", [REGISTER] = "cardRegister", [PIPELINE] = "cardPipeline",
	[SET] = "cardSet", [LAUNCH] = "cardLaunch", [COMMIT] = "cardCommit", [WAIT] = "cardWait", [WAIT_ALL] = "cardWaitAll",
	[COPY] = "cardCopy", [CLOCK_RUN] = "clockRun", [CLOCK_WAIT] = "clockWait", [CLOCK_TIME] = "clockTimes", [PLAIN_RUN] = "plainRun",
	[EVAL] = "_ZN3lib4evalEii", [LIB_ALLOC] = "libAlloc", [LIB_RELEASE] = "libRelease", [DECODE] = "libDecode", [LEVEL] = "libLevel",
	[NOTE] = "libNote", [MAYBE] = "libMaybe", [ENTRY] = "libEntry", [WORKER] = "libWorker", [STEP] = "libStep", [PART] = "libPart",
	[MT_ALLOC] = "mtAlloc", [MT_INSIDE] = "mtInside", [MT_RETAIN] = "mtRetain",
	[MT_RELEASE] = "mtRelease", [MT_LABEL] = "mtLabel", [MT_RUN] = "mtRun", [MT_COMMIT] = "mtCommit", [MT_WAIT] = "mtWait", [MT_POLL] = "mtPoll",
	[MT_TIME] = "mtTime", [PACE_DESCRIBE] = "paceDescribe", [PACE_RUN] = "paceRun", [PACE_DO] = "paceDo", [PACE_WAIT] = "paceWait",
};

/* ---- what is heard ------------------------------------------------------------------------------ */

struct heard_work {
	char name[64], queue[32], device[32], args[64];
	struct work w;
};

struct heard {
	struct heard_work work[256];
	u32 works, calls, of_kind[CALL_KINDS], failed, unwound, memories, memory_ends, points;
	double level;
	char last_args[256], span[64], labels[256];
	u64 flows;
};

static struct heard heard;
static struct listener writer;

/* With '|' between the arguments. */
static void flat(char *to, size_t size, const struct arg_text *a)
{
	u32 i, n = a->length < size ? a->length : (u32)size - 1;

	for (i = 0; i < n; i++)
		to[i] = a->at[i] ? a->at[i] : '|';
	to[n] = 0;
}

static void hear_work(void *to, struct process *p, const struct work *w)
{
	if (heard.works < 256) {
		struct heard_work *h = &heard.work[heard.works];

		h->w = *w;
		snprintf(h->name, sizeof(h->name), "%s", w->name);
		snprintf(h->queue, sizeof(h->queue), "%s", w->queue->name);
		snprintf(h->device, sizeof(h->device), "%s", w->queue->device->title);
		flat(h->args, sizeof(h->args), &w->args);
	}
	heard.works++;
	if (writer.work)
		writer.work(to, p, w);
}

static void hear_call(void *to, struct process *p, struct thread *t, const struct call *c)
{
	heard.calls++;
	heard.of_kind[c->kind]++;
	heard.failed += c->failed;
	heard.unwound += c->unwound;
	heard.flows += c->works;
	if (c->kind == CALL_SPAN && !strncmp(c->name, "sgemm", 5))
		flat(heard.last_args, sizeof(heard.last_args), &c->args);
	if (c->kind == CALL_SPAN && !strncmp(c->name, "lib::", 5))
		snprintf(heard.span, sizeof(heard.span), "%s", c->name);
	if (writer.call)
		writer.call(to, p, t, c);
}

static void hear_counter(void *to, struct process *p, const struct counter_point *c)
{
	heard.points++;
	heard.level = c->value;
	if (writer.counter)
		writer.counter(to, p, c);
}

static void hear_memory(void *to, struct process *p, struct device_memory *m)
{
	heard.memories++;
	if (writer.memory)
		writer.memory(to, p, m);
}

static void hear_memory_end(void *to, struct process *p, struct device_memory *m)
{
	heard.memory_ends++;
	snprintf(heard.labels + strlen(heard.labels), sizeof(heard.labels) - strlen(heard.labels), "%s|", m->label ? m->label : "");
	if (writer.memory_end)
		writer.memory_end(to, p, m);
}

static struct listener listener(struct listener to)
{
	struct listener l = to;

	memset(&heard, 0, sizeof(heard));
	writer = to;
	l.work = hear_work;
	l.call = hear_call;
	l.counter = hear_counter;
	l.memory = hear_memory;
	l.memory_end = hear_memory_end;
	return l;
}

static const struct heard_work *work_named(const char *name)
{
	for (u32 i = 0; i < heard.works && i < 256; i++)
		if (!strcmp(heard.work[i].name, name))
			return &heard.work[i];
	return NULL;
}

/* ---- records ------------------------------------------------------------------------------------- */

/* Values as the library writes them. */
struct values {
	char at[512];
	u32 used;
};

static void number(struct values *v, u64 n)
{
	memcpy(v->at + v->used, &n, 8);
	v->used += 8;
}

static void real(struct values *v, double x)
{
	memcpy(v->at + v->used, &x, 8);
	v->used += 8;
}

static void string(struct values *v, const char *text)
{
	u16 length = text ? (u16)strlen(text) : PROBE_STRING_BAD;

	memcpy(v->at + v->used, &length, 2);
	if (text)
		memcpy(v->at + v->used + 2, text, length);
	v->used += 2u + (text ? length : 0);
}

static void put(struct gen *g, u64 begin, u64 end, u64 word, u32 node, const struct values *v)
{
	struct rec_probe r = { .begin = begin, .site = word, .node = node };
	u64 *body = gen_put(g, KIND_event | (u64)EVENT_probe << 3 | (u64)v->used << 11 | (end - g->last) << EVENT_DT_SHIFT,
			    (u32)(sizeof(r) + v->used + 7) / 8);

	memcpy(body, &r, sizeof(r));
	memcpy((char *)body + sizeof(r), v->at, v->used);
	g->last = end;
}

#define CALL(g, begin, end, site, ...) do { \
	u64 call_values[] = { 0, ##__VA_ARGS__ }; \
	struct values call_v = { .used = 0 }; \
	for (u32 call_i = 1; call_i < sizeof(call_values) / 8; call_i++) \
		number(&call_v, call_values[call_i]); \
	put(g, begin, end, PROBE_WORD(site, 0, 0), 0, &call_v); \
} while (0)

static void own_rows(struct gen *own, u64 t)
{
	/* in two pieces, as a long source would be */
	static char half[sizeof(rows) / 2 + 1], rest[sizeof(rows)];

	memcpy(half, rows, sizeof(rows) / 2);
	strcpy(rest, rows + sizeof(rows) / 2);
	gen_event(own, t, EVENT_probe_rows, NULL, 0, half);
	gen_event(own, t, EVENT_probe_rows, NULL, 0, rest);
}

static void begin(struct gen *own, struct gen *g)
{
	gen_init(own, 0, 0, 0, push, NULL);
	gen_session(own, 1000, 4096);
	own_rows(own, 1000);
	gen_flush(own);
	gen_init(g, PID, BORN, 0, push, NULL);
	GEN_EVENT(g, BORN, hello, "/bin/infer", .pid = PID, .ppid = 1);
	GEN_EVENT(g, BORN, thread, "main", .tid = PID);
	gen_node(g, 0, 0x400010);
	gen_node(g, 1, 0x400020);
	for (u32 i = 1; i < SITES; i++)
		GEN_EVENT(g, BORN, probe_site, symbols[i], .id = i, .row = i - 1, .real = 0x500000 + i * 16);
}

/* ---- one whole run -------------------------------------------------------------------------------- */

enum { GEMMS = 4, DECODES = 5, LEVELS = 7 };

static u64 blas(struct gen *g, u64 t)
{
	for (u32 i = 0; i < GEMMS; i++, t += 30 * US)           /* 2 * 100^3 in 20 us: 100 GFLOP/s */
		CALL(g, t, t + 20 * US, SGEMM, 100, 100, 100);
	CALL(g, t, t + 10 * US, SGEMM, 64, 32, 16);
	return t + 20 * US;
}

/* Two inside of one, which is told of last; lib::eval around it is nobody's kernel. */
static u64 inside(struct gen *g, u64 t)
{
	CALL(g, t + 10 * US, t + 12 * US, SGEMM, 1, 2, 3);
	CALL(g, t + 20 * US, t + 23 * US, SGEMM, 1, 2, 3);
	CALL(g, t + 5 * US, t + 25 * US, SGEMM, 10, 20, 30);
	CALL(g, t, t + 30 * US, EVAL);
	return t + 40 * US;
}

static void allocate(struct gen *g, u64 t, u64 address, u64 size, const char *label, u64 error)
{
	struct values v = { .used = 0 };

	number(&v, size);
	string(&v, label);
	number(&v, address);
	number(&v, error);
	put(g, t, t + 2 * US, PROBE_WORD(MALLOC, 0, 0), 2, &v);
}

/* Two of 1 MiB and 2 MiB live at once, the first one is freed; one fails; one free of what nobody allocated. */
static u64 card_memory(struct gen *g, u64 t)
{
	allocate(g, t, 0x10000, 1 << 20, "weights", 0);
	allocate(g, t + 5 * US, 0x20000, 2 << 20, "cache", 0);
	allocate(g, t + 10 * US, 0, 4 << 20, "too much", 2);
	CALL(g, t + 15 * US, t + 16 * US, FREE, 0x10000);
	CALL(g, t + 17 * US, t + 18 * US, FREE, 0xbad000);
	CALL(g, t + 19 * US, t + 20 * US, FREE, 0);
	return t + 30 * US;
}

static void bind(struct gen *g, u64 t, u64 function, const char *name)
{
	struct values v = { .used = 0 };

	number(&v, function);
	string(&v, name);
	put(g, t, t + US, PROBE_WORD(REGISTER, 0, 0), 0, &v);
}

/* Pipelines 0x71 "relu" and 0x72 "softmax"; encoder 0xe1. Queue 0xaa gets relu and softmax, queue 0xbb gets relu. */
static u64 card_work(struct gen *g, u64 t)
{
	bind(g, t, 0xf1, "relu");
	bind(g, t + 2 * US, 0xf2, "softmax");
	CALL(g, t + 4 * US, t + 5 * US, PIPELINE, 0xf1, 0x71);
	CALL(g, t + 6 * US, t + 7 * US, PIPELINE, 0xf2, 0x72);
	CALL(g, t + 8 * US, t + 8 * US, SET, 0xe1, 0x71);
	CALL(g, t + 10 * US, t + 12 * US, LAUNCH, 0xe1, 128, 2, 0xaa, 9);
	CALL(g, t + 13 * US, t + 13 * US, SET, 0xe1, 0x72);
	CALL(g, t + 14 * US, t + 16 * US, LAUNCH, 0xe1, 256, 0, 0xaa, 9);
	CALL(g, t + 17 * US, t + 18 * US, COMMIT, 0xaa);
	CALL(g, t + 19 * US, t + 20 * US, LAUNCH, 0xe1, 8, 8, 0xbb, 9);
	CALL(g, t + 21 * US, t + 22 * US, COMMIT, 0xbb);
	CALL(g, t + 23 * US, t + 50 * US, WAIT, 0xaa, 1);       /* fails: nothing is over */
	CALL(g, t + 51 * US, t + 100 * US, WAIT, 0xaa, 0);
	CALL(g, t + 110 * US, t + 150 * US, WAIT_ALL);
	CALL(g, t + 160 * US, t + 170 * US, LAUNCH, 0xe1, 1, 1, 0xaa, 9);       /* never submitted */
	CALL(g, t + 171 * US, t + 271 * US, COPY, 1000000);     /* 10 GB/s */
	return t + 300 * US;
}

/* The device's clock is 500 s ahead: two command buffers that ran for 40 us and 60 us. */
static u64 clock_work(struct gen *g, u64 t)
{
	for (u64 i = 0; i < 2; i++, t += 200 * US) {
		struct values v = { .used = 0 };
		double start = 500 + (double)(t + 20 * US) * 1e-9;

		CALL(g, t, t + 5 * US, CLOCK_RUN, 0xc0 + i);
		CALL(g, t + 6 * US, t + 150 * US, CLOCK_WAIT, 0xc0 + i);
		number(&v, 0xc0 + i);
		real(&v, start);
		real(&v, start + (i ? 60e-6 : 40e-6));
		put(g, t + 151 * US, t + 152 * US, PROBE_WORD(CLOCK_TIME, 0, 0), 0, &v);
	}
	return t;
}

static u64 lib(struct gen *g, u64 t)
{
	struct values bad = { .used = 0 };

	CALL(g, t, t + 10 * US, EVAL);
	put(g, t + 10 * US, t + 12 * US, PROBE_WORD(EVAL, PROBE_UNWOUND, 0), 0, &bad);
	CALL(g, t + 20 * US, t + 21 * US, LIB_ALLOC, 5000, 0x9000);
	CALL(g, t + 22 * US, t + 23 * US, LIB_ALLOC, 3000, 0xa000);
	CALL(g, t + 24 * US, t + 25 * US, LIB_RELEASE, 0x9000);
	CALL(g, t + 26 * US, t + 27 * US, LIB_RELEASE, 0xdead);                 /* an object, not memory */
	CALL(g, t + 28 * US, t + 29 * US, LIB_ALLOC, 1000, 0x9000);             /* the address comes again ... */
	CALL(g, t + 27 * US, t + 30 * US, LIB_RELEASE, 0x9000);                 /* ... before its release has returned */
	t += 40 * US;
	for (u32 i = 0; i < DECODES; i++, t += 2 * MS)
		CALL(g, t, t + 1 * MS, DECODE, 8);
	for (u32 i = 0; i < LEVELS; i++, t += US)
		CALL(g, t, t, LEVEL, i * i);
	CALL(g, t, t, NOTE, 3);
	CALL(g, t + US, t + 2 * US, MAYBE, 0);
	CALL(g, t + 3 * US, t + 4 * US, MAYBE, 1);
	CALL(g, t + 5 * US, t + 5 * US, ENTRY);
	number(&bad, 0);
	put(g, t + 6 * US, t + 7 * US, PROBE_WORD(DECODE, 0, 1), 0, &bad);
	CALL(g, t + 8 * US, t + 9 * US, PLAIN_RUN, 5, 0);
	return t + 20 * US;
}

static void whole_run(struct gen *own, struct gen *g)
{
	u64 t = BORN + 10 * US;

	begin(own, g);
	gen_alloc(g, t, 0x1000, 1 << 20, 2);
	t = inside(g, t + 10 * US);
	t = blas(g, t);
	t = card_memory(g, t);
	t = card_work(g, t);
	t = clock_work(g, t);
	t = lib(g, t);
	CALL(g, t, t, WORKER, 7);
	GEN_EVENT(g, t + US, thread_end, "main", .tid = PID);
	gen_flush(g);
	GEN_EVENT(own, t, jit_name, "load_model", .pid = PID, .start = 0x400018, .size = 0x11);
	GEN_EVENT(own, t, loss, "probe_enters", .pid = PID, .count = 103);
	GEN_EVENT(own, t, loss, "probe_exits", .pid = PID, .count = 100);
	GEN_EVENT(own, t, loss, "probe_short", .pid = PID, .count = 11);
	GEN_EVENT(own, t + MS, died, NULL, .pid = PID, .born = BORN, .how = DIED_EXITED);
	gen_flush(own);
}

/* ---- checks --------------------------------------------------------------------------------------- */

static const struct probe_sum *sum_named(const struct session *s, const char *name)
{
	for (u32 i = 0; i < s->probes; i++)
		if (!strcmp(s->probe[i].name, name))
			return &s->probe[i];
	return NULL;
}

static const struct device *device_named(const struct session *s, const char *title)
{
	for (u32 i = 0; i < s->process[0]->devices; i++)
		if (!strcmp(s->process[0]->device[i]->title, title))
			return s->process[0]->device[i];
	return NULL;
}

static const struct pool *pool_named(const struct session *s, const char *name)
{
	for (u32 i = 0; i < s->pools.count; i++)
		if (!strcmp(s->pools.at[i].name, name))
			return &s->pools.at[i];
	return NULL;
}

static void check_spans(const struct session *s)
{
	const struct device *cpu = device_named(s, "CPU: blas");
	const struct probe_sum *gemm = sum_named(s, "sgemm 100x100x100"), *small = sum_named(s, "sgemm 64x32x16");

	ok(cpu && cpu->kernels == 3 && cpu->kernel[0].calls == GEMMS && cpu->kernel[0].flops == GEMMS * 2e6 &&
	   cpu->kernel[0].total_ns == GEMMS * 20 * US, "spans with flops are kernels of the CPU");
	ok(cpu && cpu->busy_ns == GEMMS * 20 * US + 10 * US + 20 * US && !cpu->queues, "busy while they ran, without queues");
	ok(gemm && gemm->calls == GEMMS && gemm->flops == GEMMS * 2e6 && !strcmp(gemm->preset, "blas") && !strcmp(gemm->function, "cblas_sgemm"),
	   "and summed up by name");
	ok(small && small->calls == 1 && small->flops == 2. * 64 * 32 * 16, "names have the shape");
	ok(!strcmp(heard.last_args, "M=64|N=32|K=16|flops=65536|gflops=6.554|function=cblas_sgemm|"), "arguments: %s", heard.last_args);
	ok(!strcmp(heard.span, "lib::eval"), "a name without parameters: %s", heard.span);
	ok(heard.unwound == 1 && sum_named(s, "lib::eval") && sum_named(s, "lib::eval")->unwound == 1 && sum_named(s, "lib::eval")->calls == 3,
	   "a call that was left by an exception");
	ok(sum_named(s, "libMaybe")->calls == 1, "when= decides what counts");
	ok(sum_named(s, "libDecode")->rates == 1 && sum_named(s, "libDecode")->rate[0].total == 8 * DECODES && !strcmp(sum_named(s, "libDecode")->rate[0].unit, "tokens"),
	   "rates are summed up");
	ok(s->losses.probe_values == 1, "a value that could not be read is counted: %llu", (unsigned long long)s->losses.probe_values);
	ok(heard.points == LEVELS && heard.level == (LEVELS - 1) * (LEVELS - 1), "counters");
	ok(heard.of_kind[CALL_MARK] == 2, "marks, and a span that has no duration");
	ok(s->losses.probe_calls == 3 && s->short_probes == 11, "what never returned and what was too short");
}

static void check_nesting(const struct session *s)
{
	const struct device *cpu = device_named(s, "CPU: blas");
	const struct probe_sum *outer = sum_named(s, "sgemm 10x20x30"), *inner = sum_named(s, "sgemm 1x2x3"), *eval = sum_named(s, "lib::eval");
	double flops = 0;

	for (u32 i = 0; cpu && i < cpu->kernels; i++)
		flops += cpu->kernel[i].flops;
	ok(flops == GEMMS * 2e6 + 2. * 64 * 32 * 16 + 2. * 10 * 20 * 30, "a kernel inside of one of the same library is part of it: %.0f flops", flops);
	ok(inner && inner->calls == 2 && inner->flops == 2 * 12. && inner->self_ns == 5 * US, "but it is a call");
	ok(outer && outer->total_ns == 20 * US && outer->self_ns == 15 * US, "own time is without the calls inside");
	ok(eval && eval->self_ns == (10 + 2 + 10) * US, "and counts only those right inside: %llu ns", eval ? (unsigned long long)eval->self_ns : 0);
	ok(!strcmp(s->process[0]->thread[0].name, "worker 7"), "a row names a thread, until the program does: %s", s->process[0]->thread[0].name);
}

/* More calls beside each other than a list has room for, all of them inside of one. */
static void many_inside(void)
{
	enum { MANY = 10000 };
	struct listener l = listener((struct listener) { 0 });
	const struct probe_sum *outer;
	struct gen own, g;
	u64 t = BORN + US;

	feed = feed_new(&l);
	begin(&own, &g);
	for (u32 i = 0; i < MANY; i++, t += US)
		CALL(&g, t, t + 600, SGEMM, 1, 2, 3);
	CALL(&g, BORN + 1, t, EVAL);
	gen_flush(&g);
	feed_end(&feed);
	outer = sum_named(feed.session, "lib::eval");
	ok(outer && outer->total_ns - outer->self_ns == MANY * 600ull, "all that is inside: %llu ns", outer ? (unsigned long long)(outer->total_ns - outer->self_ns) : 0);
	ok(device_named(feed.session, "CPU: blas")->kernel[0].calls == MANY, "and no kernel is forgotten");
	feed_free(&feed);
}

static void check_work(const struct session *s)
{
	const struct heard_work *relu = work_named("relu"), *softmax = work_named("softmax"), *run = work_named("run"), *plain = work_named("plain 5");
	const struct device *card = device_named(s, "card"), *clock = device_named(s, "clock");
	u64 t = relu ? relu->w.start_ns - 17 * US : 0, waits = 0;

	ok(relu && relu->w.done == DONE_OBSERVED && relu->w.end_ns == t + 100 * US, "a kernel lasts from its submit to the end of its wait");
	ok(relu && relu->w.x == 128 && relu->w.y == 2 && relu->w.z == 1 && (relu->w.local & 0x1fffff) == 64 && !strcmp(relu->args, "depth=9|"),
	   "with its grid and arguments: %s", relu ? relu->args : "");
	ok(softmax && softmax->w.start_ns == t + 17 * US && !strcmp(softmax->queue, "queue 0") && !strcmp(softmax->device, "card"), "names by handles");
	ok(card && card->kernels == 2 && card->queues == 2 && card->done[DONE_OBSERVED] == 4 && card->done[DONE_NEVER] == 1, "another queue is another wait");
	ok(s->losses.unfinished == 1, "what nobody submitted is unfinished");
	ok(card && card->busy_ns == (150 - 17) * US + 100 * US, "busy %llu ns: overlap counts once", card ? (unsigned long long)card->busy_ns : 0);
	ok(card && card->kind[WORK_WRITE].calls == 1 && card->kind[WORK_WRITE].bytes == 1000000, "copies are transfers");
	ok(run && run->w.done == DONE_TIMED && clock->done[DONE_TIMED] == 2, "times of the device where they are told");
	ok(run && clock->kernel[0].total_ns / 1000 == 100 && run->w.start_ns > run->w.call_begin_ns, "as the device saw them: %llu ns",
	   run ? (unsigned long long)clock->kernel[0].total_ns : 0);
	ok(plain && plain->w.end_ns - plain->w.start_ns == US && plain->w.done == DONE_OBSERVED, "a library that waits for nothing is through when it returns");
	for (u32 i = 0; i < s->calls; i++)
		waits += s->call[i].kind == CALL_WAIT ? s->call[i].total_ns : 0;
	ok(waits == (27 + 49 + 40 + 144 + 144) * US, "the host waited %llu ns", (unsigned long long)waits);
	ok(heard.failed == 2, "calls that failed");
	ok(heard.flows == 2 * 3 + 1 + 2 + 1, "arrows from dispatch and submit: %llu", (unsigned long long)heard.flows);
}

static void check_memory(const struct session *s)
{
	const struct device *card = device_named(s, "card");
	const struct pool *card_pool = pool_named(s, "card"), *lib_pool = pool_named(s, "lib");

	ok(card_pool && card_pool->peak == 3 << 20 && card_pool->now == 2 << 20 && card_pool->allocs == 2 && card_pool->frees == 1, "memory of its own");
	ok(card && device_counts(card) && s->process[0]->device_peak[card->index].count == 1 && s->process[0]->device_peak[card->index].at[0].bytes == 3 << 20,
	   "who held its peak");
	ok(s->total.peak == 1 << 20 && s->with_devices.peak == 4 << 20, "is not the host's");
	ok(lib_pool && lib_pool->kind == POOL_LIBRARY && lib_pool->peak == 8000 && lib_pool->now == 4000 && lib_pool->allocs == 3, "a heap in the host's memory");
	ok(s->losses.probe_frees == 1, "a free of what nobody allocated is counted, unless it may be of anything");
	ok(heard.memories == 5 && heard.memory_ends == 5, "births and ends are told");
}

static const char *const json_parts[] = {
	"{\"name\": \"sgemm 100x100x100\", \"function\": \"cblas_sgemm\", \"role\": \"span\", \"preset\": \"blas\", \"calls\": 4, \"failed\": 0, "
	"\"unwound\": 0, \"total_ns\": 80000, \"self_ns\": 80000, \"avg_ns\": 20000, \"min_ns\": 20000, \"max_ns\": 20000, \"bytes\": 0, \"flops\": 8000000",
	"\"kernels\": [{\"name\": \"sgemm 100x100x100\", \"device\": \"CPU: blas\", \"pid\": 60, \"calls\": 4",
	"\"type\": \"library\"", "\"name\": \"lib\", \"kind\": \"library\", \"peak_bytes\": 8000",
	"\"rates\": [{\"unit\": \"tokens\", \"total\": 40",
	"\"probe_values\": 1, \"probe_calls\": 3, \"probe_frees\": 1", "\"probe_calls_too_short\": 11", "\"peak_with_devices\": {\"bytes\": 4194304",
	NULL,
};

static const char *const text_parts[] = {
	"GFLOP/s  name\n", "  100.00  sgemm 100x100x100  on CPU: blas\n", "relu  on card  (times as the host saw them)\n", "cardCopy  (10 GB/s)",
	"sgemm 100x100x100  (blas, 100 GFLOP/s)", "tokens/s)", "lib::eval  (1 left by an exception)", "3 probed calls never returned", NULL,
};

static void run(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct perfetto *w = perfetto_open(fd);
	struct listener l = listener(perfetto_listener(w));
	struct symbols *y = symbols_new(false);
	struct gen own, g;

	feed = feed_new(&l);
	whole_run(&own, &g);
	feed_end(&feed);
	ok(!feed.session->losses.unknown_ids && !feed.session->losses.records && !feed.session->losses.texts, "nothing else is missing");
	check_spans(feed.session);
	check_nesting(feed.session);
	check_work(feed.session);
	check_memory(feed.session);
	perfetto_finish(w, feed.session, y);
	summary(path, ".summary.json", feed.session, y, json_parts);
	summary(path, ".summary.txt", feed.session, y, text_parts);
	symbols_free(y);
	ok(!perfetto_close(w), "the trace is written");
	feed_free(&feed);
}

/* ---- Metal's objects ------------------------------------------------------------------------------- */

static void mt_label(struct gen *g, u64 t, u64 address, const char *label)
{
	struct values v = { .used = 0 };

	number(&v, address);
	string(&v, label);
	put(g, t, t + US, PROBE_WORD(MT_LABEL, 0, 0), 0, &v);
}

static void mt_times(struct gen *g, u64 t, u64 of, u64 start, u64 end)
{
	struct values v = { .used = 0 };

	number(&v, of);
	real(&v, 7 + (double)start * 1e-9);
	real(&v, 7 + (double)end * 1e-9);
	put(g, t, t + US, PROBE_WORD(MT_TIME, 0, 0), 0, &v);
}

static void mt_memory(struct gen *g, u64 t)
{
	CALL(g, t, t + US, MT_ALLOC, 0x1000, 4000);
	CALL(g, t + 2 * US, t + 3 * US, MT_INSIDE, 0x2000, 1000, 0x1000);
	mt_label(g, t + 4 * US, 0x2000, "part");
	CALL(g, t + 6 * US, t + 7 * US, MT_ALLOC, 0x3000, 500);
	mt_label(g, t + 8 * US, 0x3000, "twice held");
	mt_label(g, t + 10 * US, 0x4000, "no memory");
	CALL(g, t + 12 * US, t + 13 * US, MT_RETAIN, 0x3000);
	CALL(g, t + 14 * US, t + 15 * US, MT_RETAIN, 0x4000);
	CALL(g, t + 16 * US, t + 17 * US, MT_RELEASE, 0x3000);
	CALL(g, t + 18 * US, t + 19 * US, MT_ALLOC, 0x5000, 100);
	CALL(g, t + 20 * US, t + 21 * US, MT_RELEASE, 0x3000);
}

/* Command buffers 1 to 4 on one queue, 5 on another. 1 has two kernels, whose times are known together. Who waits for the third, which has none,
 * waits for the second. The fourth is over when somebody has looked twice. */
static void mt_work(struct gen *g, u64 t)
{
	CALL(g, t, t + US, MT_RUN, 1, 1, 0xaa);
	CALL(g, t + 2 * US, t + 3 * US, MT_RUN, 2, 1, 0xaa);
	CALL(g, t + 4 * US, t + 5 * US, MT_COMMIT, 1, 0xaa);
	CALL(g, t + 6 * US, t + 96 * US, MT_WAIT, 1, 0xaa);
	mt_times(g, t + 97 * US, 1, t + 10 * US, t + 80 * US);
	CALL(g, t + 100 * US, t + 101 * US, MT_RUN, 3, 2, 0xaa);
	CALL(g, t + 102 * US, t + 103 * US, MT_RUN, 5, 5, 0xbb);
	CALL(g, t + 104 * US, t + 105 * US, MT_COMMIT, 2, 0xaa);
	CALL(g, t + 106 * US, t + 107 * US, MT_COMMIT, 5, 0xbb);
	CALL(g, t + 108 * US, t + 109 * US, MT_COMMIT, 3, 0xaa);
	CALL(g, t + 130 * US, t + 140 * US, MT_POLL, 0xbb, 0);
	CALL(g, t + 110 * US, t + 150 * US, MT_WAIT, 3, 0xaa);          /* the look was inside of it */
	CALL(g, t + 200 * US, t + 201 * US, MT_RUN, 4, 4, 0xaa);
	CALL(g, t + 202 * US, t + 203 * US, MT_COMMIT, 4, 0xaa);
	CALL(g, t + 210 * US, t + 220 * US, MT_POLL, 0xaa, 0);
	CALL(g, t + 230 * US, t + 240 * US, MT_POLL, 0xaa, 1);
}

static void metal_shaped(void)
{
	struct listener l = listener((struct listener) { 0 });
	const struct heard_work *shared, *third, *fourth;
	const struct pool *pool;
	const struct device *mt;
	struct gen own, g;
	u64 waits = 0;

	feed = feed_new(&l);
	begin(&own, &g);
	mt_memory(&g, BORN + 10 * US);
	mt_work(&g, BORN + 100 * US);
	gen_flush(&g);
	feed_end(&feed);
	pool = pool_named(feed.session, "mt");
	mt = device_named(feed.session, "mt");
	ok(pool && pool->peak == 4600 && pool->allocs == 3 && pool->frees == 1 && pool->now == 4100, "what lies in memory takes none, and all holders let go");
	ok(strstr(heard.labels, "twice held|") && strstr(heard.labels, "part|"), "labels by handle: %s", heard.labels);
	ok(!feed.session->losses.probe_frees && !feed.session->losses.unknown_ids, "names of other things are no trouble");
	shared = work_named("kernel 2");
	ok(shared && shared->w.sharers == 2 && shared->w.done == DONE_OBSERVED && shared->w.end - shared->w.start >= 70 * US - 2, "times of a command buffer are shared");
	ok(mt && mt->kernel && mt->busy_ns / US == 70 + 46 + 38, "and count once: busy for %llu us", mt ? (unsigned long long)mt->busy_ns / US : 0);
	third = work_named("kernel 3");
	fourth = work_named("kernel 4");
	ok(third && third->w.done == DONE_OBSERVED && third->w.end_ns - third->w.start_ns == 46 * US, "who waits for one waits for those before it");
	ok(fourth && fourth->w.done == DONE_OBSERVED && fourth->w.end_ns - fourth->w.start_ns == 38 * US, "what is not over yet is not");
	ok(feed.session->losses.unfinished == 1, "another queue is not waited for");
	for (u32 i = 0; i < feed.session->calls; i++)
		waits += feed.session->call[i].kind == CALL_WAIT ? feed.session->call[i].total_ns : 0;
	ok(waits == (90 + 40 + 10 + 10) * US, "a wait in a wait counts once: %llu us", (unsigned long long)waits / US);
	feed_free(&feed);
}

/* ---- calls inside of calls --------------------------------------------------------------------------- */

/* A step that comes by its parts: 6 tokens at once in two parts, then 1, 1, a pause of 5 us and 1; then another prompt and 1. */
static u64 steps(struct gen *g, u64 t)
{
	CALL(g, t + US, t + 2 * US, PART, 4);
	CALL(g, t + 2 * US, t + 4 * US, PART, 2);
	CALL(g, t, t + 5 * US, STEP, 6);
	for (u32 i = 0; i < 3; i++) {
		u64 begin = t + 10 * US + i * 4 * US + (i == 2 ? 5 * US : 0);

		CALL(g, begin + US, begin + 3 * US, PART, 1);
		CALL(g, begin, begin + 4 * US, STEP, 1);
	}
	CALL(g, t + 40 * US, t + 42 * US, STEP, 3);             /* this one's parts are not seen */
	CALL(g, t + 50 * US, t + 57 * US, STEP, 1);
	return t + 100 * US;
}

static void nested(void)
{
	struct listener l = listener((struct listener) { 0 });
	struct gen own, g;
	u64 t = BORN + MS;

	feed = feed_new(&l);
	begin(&own, &g);
	CALL(&g, t + US, t + 2 * US, COPY, 600);
	CALL(&g, t + 2 * US, t + 3 * US, COPY, 400);
	CALL(&g, t, t + 4 * US, COPY, 1000);
	CALL(&g, t + 5 * US, t + 6 * US, COPY, 7);
	CALL(&g, t + 8 * US, t + 9 * US, LIB_ALLOC, 5000, 0x9000);
	CALL(&g, t + 7 * US, t + 10 * US, LIB_ALLOC, 5000, 0x9000);
	CALL(&g, t + 11 * US, t + 12 * US, LIB_ALLOC, 3000, 0x9000);    /* the end of the first one was not seen */
	steps(&g, t + 20 * US);
	gen_flush(&g);
	feed_end(&feed);
	const struct session *s = feed.session;
	const struct pool *pool = pool_named(s, "lib");
	const struct token_sum *parts = &sum_named(s, "libPart")->tokens, *whole = &sum_named(s, "libStep")->tokens;

	ok(device_named(s, "card")->kind[WORK_WRITE].bytes == 1007 && device_named(s, "card")->kind[WORK_WRITE].calls == 3, "what is copied is counted once");
	ok(pool->allocs == 2 && pool->peak == 5000 && pool->now == 3000, "what is handed on is not allocated twice");
	ok(parts->batches == 2 && parts->batch_tokens == 6 && parts->batch_ns == 3 * US, "tokens of a prompt");
	ok(parts->steps == 3 && parts->step_ns == 6 * US && parts->loop_ns == 15 * US, "a loop lasts from its first step to its last: %llu",
	   (unsigned long long)parts->loop_ns);
	ok(whole->batches == 1 && whole->batch_tokens == 3 && whole->steps == 1 && whole->loop_ns == 7 * US, "who has parts is not counted again");
	feed_free(&feed);
}

/* ---- what should not be ------------------------------------------------------------------------------ */

/* No rows, rows that cannot be read, numbers that nobody gave: all is shown by its symbol. */
static void without_rows(const char *source)
{
	struct listener l = listener((struct listener) { 0 });
	struct gen own, g;

	feed = feed_new(&l);
	gen_init(&own, 0, 0, 0, push, NULL);
	gen_session(&own, 1000, 4096);
	if (source)
		gen_event(&own, 1000, EVENT_probe_rows, NULL, 0, source);
	gen_flush(&own);
	gen_init(&g, PID, BORN, 0, push, NULL);
	GEN_EVENT(&g, BORN, hello, "/bin/infer", .pid = PID, .ppid = 1);
	GEN_EVENT(&g, BORN, probe_site, "cblas_sgemm", .id = 1, .row = 4000);
	CALL(&g, BORN + US, BORN + 2 * US, 1, 1, 2, 3);
	CALL(&g, BORN + 3 * US, BORN + 4 * US, 2, 1, 2, 3);
	CALL(&g, BORN + 5 * US, BORN + 6 * US, 0xffffffff, 1, 2, 3);
	gen_flush(&g);
	feed_end(&feed);
	ok(heard.calls == 1 && feed.session->probes == 1 && !strcmp(feed.session->probe[0].name, "cblas_sgemm"), "a call without a row is a span");
	ok(feed.session->losses.unknown_ids == 3, "and counted, like calls of what nobody probed: %llu", (unsigned long long)feed.session->losses.unknown_ids);
	feed_free(&feed);
}

/* A record that does not fit its row, and a child that goes on with its parent's functions and names. */
static void odd_records(void)
{
	struct listener l = listener((struct listener) { 0 });
	struct gen own, g, child;

	feed = feed_new(&l);
	begin(&own, &g);
	CALL(&g, BORN + US, BORN + 2 * US, SGEMM, 1, 2, 3, 4);
	bind(&g, BORN + 3 * US, 0xf1, "relu");
	CALL(&g, BORN + 5 * US, BORN + 6 * US, SET, 0xe1, 0xf1);
	GEN_EVENT(&g, BORN + 10 * US, child, NULL, .pid = PID + 1, .how = CHILD_FORK, .followed = 1);
	gen_flush(&g);
	gen_init(&child, PID + 1, BORN + 11 * US, 0, push, NULL);
	GEN_EVENT(&child, BORN + 11 * US, hello, "/bin/infer", .pid = PID + 1, .ppid = PID, .flags = HELLO_FORKED, .parent = BORN);
	GEN_EVENT(&child, BORN + 11 * US, thread, "main", .tid = PID + 1);
	CALL(&child, BORN + 12 * US, BORN + 13 * US, LAUNCH, 0xe1, 4, 4, 1, 1);
	CALL(&child, BORN + 14 * US, BORN + 15 * US, COMMIT, 1);
	CALL(&child, BORN + 16 * US, BORN + 17 * US, WAIT, 1, 0);
	CALL(&child, BORN + 18 * US, BORN + 19 * US, FREE, 0x5000);     /* its parent's */
	gen_flush(&child);
	feed_end(&feed);
	ok(feed.session->losses.records == 1, "a record that does not fit its row is left out and counted");
	ok(work_named("relu") && feed.session->process[1]->devices == 1 && !feed.session->losses.probe_frees, "a child knows what its parent knew");
	feed_free(&feed);
}

/* More work in flight than is kept, on more queues than are drawn. */
static void never_waited_for(void)
{
	enum { MANY = 40000 };
	struct listener l = listener((struct listener) { 0 });
	const struct device *card;
	struct gen own, g;
	u64 t = BORN, all = 0;

	feed = feed_new(&l);
	begin(&own, &g);
	for (u32 i = 0; i < MANY; i++, t += US)
		CALL(&g, t, t + 1, LAUNCH, 0xe1, 1, 1, i % 100, 0);
	gen_flush(&g);
	feed_end(&feed);
	card = device_named(feed.session, "card");
	for (u32 i = 0; i < DONE_KINDS; i++)
		all += card->done[i];
	ok(all == MANY && heard.works == MANY, "all is told: %llu", (unsigned long long)all);
	ok(card->queues == 32 && card->done[DONE_UNTIMED] && card->done[DONE_NEVER] && feed.session->losses.untimed + feed.session->losses.unfinished == MANY,
	   "and said to be unfinished");
	feed_free(&feed);
}

static double pace_of(const struct device *d, const char *name)
{
	for (u32 i = 0; i < d->kernels; i++)
		if (!strcmp(d->kernel[i].name, name))
			return d->kernel[i].paced_flops.ns ? d->kernel[i].paced_flops.amount / (double)d->kernel[i].paced_flops.ns : 0;
	return -1;
}

/* 1: alone from its call to its wait. 2 and 3: together. 4: its call waits, once alone, once for 1 as well. */
static void paces(void)
{
	struct listener l = listener((struct listener) { 0 });
	const struct probe_sum *run, *at_once, *described;
	const struct device *d;
	struct gen own, g;
	u64 t = BORN;

	feed = feed_new(&l);
	begin(&own, &g);
	for (u32 i = 1; i <= 4; i++)
		CALL(&g, t + i * US, t + i * US + 1, PACE_DESCRIBE, i, 1000000);
	CALL(&g, t + 10 * US, t + 11 * US, PACE_RUN, 1, 0xaa);
	CALL(&g, t + 12 * US, t + 20 * US, PACE_WAIT, 0xaa);
	CALL(&g, t + 30 * US, t + 31 * US, PACE_RUN, 2, 0xaa);
	CALL(&g, t + 32 * US, t + 33 * US, PACE_RUN, 3, 0xbb);
	CALL(&g, t + 34 * US, t + 40 * US, PACE_WAIT, 0xbb);
	CALL(&g, t + 41 * US, t + 50 * US, PACE_WAIT, 0xaa);
	CALL(&g, t + 60 * US, t + 80 * US, PACE_DO, 4, 0xaa);
	CALL(&g, t + 90 * US, t + 91 * US, PACE_RUN, 1, 0xaa);
	CALL(&g, t + 92 * US, t + 192 * US, PACE_DO, 4, 0xaa);
	gen_flush(&g);
	feed_end(&feed);
	d = device_named(feed.session, "pace");
	run = sum_named(feed.session, "paceRun"), at_once = sum_named(feed.session, "paceDo"), described = sum_named(feed.session, "paceDescribe");
	ok(described && !described->flops && !described->bytes, "what describes work does not do it");
	ok(run && run->flops == 4e6 && !run->paced_flops.ns, "a call that only starts work says nothing of its pace");
	ok(at_once && at_once->flops == 2e6 && at_once->paced_flops.ns == 20 * US, "one that waits does, if it waits for nothing else");
	ok(d && pace_of(d, "kernel 1") == 100 && pace_of(d, "kernel 4") == 50, "work that was alone has a pace");
	ok(d && !pace_of(d, "kernel 2") && !pace_of(d, "kernel 3"), "and work that others ran beside has none");
	feed_free(&feed);
}

/* Each call has a name of its own: the last ones are summed up under their function's. */
static void many_names(void)
{
	enum { CALLS = 100000 };
	struct listener l = listener((struct listener) { 0 });
	const struct probe_sum *rest;
	struct gen own, g;
	u64 calls = 0;

	feed = feed_new(&l);
	begin(&own, &g);
	for (u32 i = 0; i < CALLS; i++)
		CALL(&g, BORN + i * US, BORN + i * US + 1, NOTE, i);
	gen_flush(&g);
	feed_end(&feed);
	rest = sum_named(feed.session, "libNote");
	for (u32 i = 0; i < feed.session->probes; i++)
		calls += feed.session->probe[i].calls;
	ok(calls == CALLS && rest && rest->calls == CALLS + 1 - feed.session->probes, "of %u names no call is lost: %llu", CALLS, (unsigned long long)calls);
	ok(feed.session->losses.texts >= rest->calls, "and that is said");
	feed_free(&feed);
}

int main(int argc, char **argv)
{
	run(argc > 1 ? argv[1] : "test_probed.perfetto-trace");
	without_rows(NULL);
	without_rows("#file x.probes\ncblas_sgemm nonsense");
	metal_shaped();
	odd_records();
	many_inside();
	never_waited_for();
	nested();
	paces();
	many_names();
	return done();
}
