/*
 * fuzz_reader.c - any bytes as a raw file: reader, merge, model and writers must neither crash nor hang nor grow without
 * bound. Every function has the same name here, so that no file which the input names is opened.
 *
 * A chunk is 4096 bytes, nearly all of them idle; so the input is a shorter form that is expanded here:
 *   one byte each for the numbers of words up (127 at most) and down, a head of 8 words, the words up, the words down.
 * Without libFuzzer (FUZZ_ALONE), the files given as arguments are run once, and `--seeds DIR` and
 * `--dictionary` write what the fuzzer starts from.
 */
#include "../../collector/read/feed.h"
#include "../../collector/util/array.h"
#include "../../collector/write/writer.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

volatile u64 walked;                    /* so that walking is not optimised away */

/* ---- symbols, of which nothing is known -------------------------------------------------- */

static const struct frame only_frame = { .function = "f", .linkage = "f", .named = true };

void symbols_prepare(struct symbols *y, const struct process *p, const u32 *nodes, u32 count)
{
	(void)y, (void)p, (void)nodes, (void)count;
}

struct frames symbols_frames(struct symbols *y, const struct process *p, u32 node)
{
	const struct module *m = node < p->nodes ? process_module(p, p->node[node].pc, p->node[node].epoch) : NULL;

	(void)y;
	return (struct frames) { .at = &only_frame, .count = 1, .module = m, .rel_pc = node };
}

const struct frame *symbols_owner(struct symbols *y, const struct process *p, u32 node, const struct module **module)
{
	struct frames f = symbols_frames(y, p, node);

	if (module)
		*module = f.module;
	return f.at;
}

char *symbols_demangled(const char *linkage, bool parameters) { (void)linkage, (void)parameters; return NULL; }
u64 symbols_unnamed(const struct symbols *y) { (void)y; return 0; }
u64 symbols_unlined(const struct symbols *y) { (void)y; return 0; }

/* ---- input ------------------------------------------------------------------------------- */

static size_t take(const u8 **data, size_t *left, void *to, size_t n)
{
	n = n < *left ? n : *left;
	memcpy(to, *data, n);
	*data += n;
	*left -= n;
	return n;
}

/* True: there was a chunk. Magic and version are right unless the input asks for others. */
static bool next_chunk(const u8 **data, size_t *left, union chunk *c)
{
	u8 words[2] = { 0 };
	u32 up, down;

	memset(c, 0, sizeof(*c));
	if (take(data, left, words, 2) < 2)
		return false;
	up = words[0] & 127;
	down = words[1];
	take(data, left, &c->head, sizeof(c->head));
	c->head.magic ^= CHUNK_MAGIC;
	c->head.version ^= WIRE_VERSION;
	if (!(words[0] & 0x80))
		c->head.used = USED_STEP(up, down);
	take(data, left, &c->word[CHUNK_HEAD_WORDS], up * 8);
	take(data, left, &c->word[CHUNK_WORDS - down], down * 8);
	return true;
}

/* ---- what the model tells is looked at, and handed to the writer ------------------------------ */

static struct listener writer;
static u64 looked;

static u64 walk_text(const struct arg_text *t)
{
	u64 sum = 0;
	u32 i;

	for (i = 0; i < t->length; i++)
		sum += (u8)t->at[i];
	return sum;
}

static void look_at_call(void *to, struct process *p, struct thread *t, const struct call *c)
{
	looked += strlen(c->name) + walk_text(&c->args) + (t ? t->tid : 0) + (c->node ? p->node[c->node].pc : 0) + (c->begin <= c->end);
	if (c->begin > c->end || c->kind >= CALL_KINDS)
		abort();
	writer.call(to, p, t, c);
}

static void look_at_work(void *to, struct process *p, const struct work *w)
{
	looked += strlen(w->name) + walk_text(&w->args) + strlen(w->queue->name) + strlen(w->queue->device->title) + (w->node ? p->node[w->node].pc : 0);
	if (w->start_ns > w->end_ns || w->end_ns >> 63 || w->kind >= WORK_KINDS || w->done >= DONE_KINDS)
		abort();
	writer.work(to, p, w);
}

static void look_at_counter(void *to, struct process *p, const struct counter_point *c)
{
	looked += strlen(c->name) + (c->unit ? strlen(c->unit) : 0) + (c->value > 0);
	writer.counter(to, p, c);
}

static void walk_memory(const struct process *p, const struct device_memory *m)
{
	looked += strlen(m->what) + (m->label ? strlen(m->label) : 0) + walk_text(&m->args) + strlen(m->device->title) + (m->node ? p->node[m->node].pc : 0);
	if (m->heap >= HEAPS_MAX)
		abort();
}

static void look_at_memory(void *to, struct process *p, struct device_memory *m)
{
	walk_memory(p, m);
	writer.memory(to, p, m);
}

static void look_at_end(void *to, struct process *p, struct device_memory *m)
{
	u32 i;

	walk_memory(p, m);
	for (i = 0; i < m->bounds; i++)
		looked += strlen(m->bound[i].what) + (m->bound[i].label ? strlen(m->bound[i].label) : 0);
	writer.memory_end(to, p, m);
}

static void look_at_point(void *to, struct process *p, struct device *d, int heap, u64 ticks, i64 bytes)
{
	looked += p->pid + strlen(d->title) + (u64)heap + ticks + (u64)bytes;
	if (bytes < 0)
		abort();
	writer.device_point(to, p, d, heap, ticks, bytes);
}

static u64 walk_devices(const struct process *p)
{
	u64 sum = 0;
	u32 i, j;

	for (i = 0; i < p->devices; i++) {
		const struct device *d = p->device[i];

		sum += strlen(d->api) + strlen(d->name) + strlen(d->driver) + strlen(d->title) + (d->heaps ? strlen(p->pools.at[d->pool].name) : 0);
		for (j = 0; j < d->kernels; j++)
			sum += strlen(d->kernel[j].name) + d->kernel[j].total_ns;
		for (j = 0; p->device_peak && j < p->device_peak[i].count; j++)
			sum += (u64)p->device_peak[i].at[j].bytes;
	}
	return sum;
}

/* Everything that writers read is there. */
static u64 walk(const struct session *s)
{
	u64 sum = session_ns(s, s->start) + session_ns(s, s->end);
	u32 i, j;

	for (i = 0; i < s->processes; i++) {
		const struct process *p = s->process[i];

		sum += strlen(p->name) + strlen(p->exe) + walk_devices(p);
		for (j = 0; j < p->at_exit.count; j++)
			sum += p->at_exit.at[j].node ? p->node[p->at_exit.at[j].node].pc : 0;
		for (j = 1; j < p->nodes; j++)
			sum += p->node[j].parent < j && process_module(p, p->node[j].pc, p->node[j].epoch);
	}
	for (i = 0; i < s->total.at_peak.count; i++)
		sum += s->process[s->total.at_peak.at[i].process]->pools.at[s->total.at_peak.at[i].pool].name[0];
	for (i = 0; i < s->with_devices.at_peak.count; i++)
		sum += s->process[s->with_devices.at_peak.at[i].process]->pools.at[s->with_devices.at_peak.at[i].pool].name[0];
	for (i = 0; i < s->calls; i++)
		sum += strlen(s->call[i].name) + s->call[i].total_ns;
	for (i = 0; i < s->probes; i++)
		sum += strlen(s->probe[i].name) + strlen(s->probe[i].function) + s->probe[i].total_ns + s->probe[i].rates;
	for (i = 0; i < s->spans; i++)
		sum += s->process[s->span[i].process]->pid;
	return sum;
}

static void write_all(struct perfetto *w, struct session *s)
{
	static int nowhere = -1;

	if (nowhere < 0)
		nowhere = open("/dev/null", O_WRONLY);
	perfetto_finish(w, s, NULL);
	summary_json(nowhere, s, NULL);
	summary_text(nowhere, s, NULL, false);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct perfetto *w = perfetto_open(open("/dev/null", O_WRONLY));
	struct listener l = writer = perfetto_listener(w);
	struct feed f;
	union chunk *c;

	l.call = look_at_call;
	l.work = look_at_work;
	l.counter = look_at_counter;
	l.memory = look_at_memory;
	l.memory_end = look_at_end;
	l.device_point = look_at_point;
	f = feed_new(&l);
	c = merge_chunk(f.merge);
	while (next_chunk(&data, &size, c)) {
		feed_replay(&f, c);
		c = merge_chunk(f.merge);
	}
	merge_unread(f.merge, c);
	feed_end(&f);
	walked += looked + walk(f.session);
	write_all(w, f.session);
	perfetto_close(w);
	feed_free(&f);
	return 0;
}

#ifdef FUZZ_ALONE
#include "../unit/gen.h"
#include <mlprof/probes.h>

static FILE *out;

/* The shorter form of a chunk that gen.h made. */
static void write_short(void *to, const union chunk *c)
{
	u32 up = USED_UP(c->head.used), down = USED_DOWN(c->head.used);
	struct chunk_head h = c->head;

	(void)to;
	h.magic ^= CHUNK_MAGIC;
	h.version ^= WIRE_VERSION;
	fputc((int)up, out);
	fputc((int)down, out);
	fwrite(&h, sizeof(h), 1, out);
	fwrite(&c->word[CHUNK_HEAD_WORDS], 8, up, out);
	fwrite(&c->word[CHUNK_WORDS - down], 8, down, out);
}

static void flush_when_long(struct gen *g)
{
	if (USED_UP(g->chunk.head.used) > 20 || USED_DOWN(g->chunk.head.used) > 16)
		gen_flush(g);
}

/* One seed for each event, in the company of blocks. */
static void seed_of_event(u32 type)
{
	u64 body[16] = { 0x7f0000001000, 0x3000, 3, 0, 1, 0x7f0000002000, 0x2000, 1 };
	struct gen own, g;

	gen_init(&own, 0, 0, 0, write_short, NULL);
	gen_session(&own, 1000, 4096);
	gen_flush(&own);
	gen_init(&g, 5, 1000, 0, write_short, NULL);
	GEN_EVENT(&g, 1000, hello, "/x", .pid = 5);
	GEN_EVENT(&g, 1000, map, NULL, .addr = 0x7f0000001000, .length = 0x8000, .prot = 3, .node = 1);
	gen_flush(&g);
	gen_node(&g, 0, 0x400000);
	gen_alloc(&g, 1010, 0x1000, 64, 1);
	gen_free(&g, 1020, 0x1000);
	gen_alloc(&g, 1030, 0x2000, 8192, 1);
	gen_leave(&g, 1040, 0x2000);
	gen_enter(&g, 1050, 0x3000, 64, 1);
	flush_when_long(&g);
	gen_event((type >= EVENT_session && type < EVENT_name) || type == EVENT_probe_rows ? &own : &g, 1060, type, body, shape_of[type].fields * 8, shape_of[type].text ? "ab" : NULL);
	gen_flush(&g);
	GEN_EVENT(&own, 1070, died, NULL, .pid = 5, .born = 1000);
	gen_flush(&own);
}

static void put_devices(struct gen *g, u64 clock)
{
	GEN_EVENT(g, 1000, device, "A", .id = 1, .flags = DEVICE_GPU, .clock = clock);
	GEN_EVENT(g, 1000, device, "A", .id = 2, .flags = DEVICE_CPU | DEVICE_HOST_MEMORY, .clock = DEVICE_CLOCK_BOUNDED);
	GEN_EVENT(g, 1000, queue, "q", .id = 3, .device = 1);
	GEN_EVENT(g, 1000, name, "k", .id = 1);
	gen_node(g, 0, 0x400000);
	GEN_EVENT(g, 1000, site, NULL, .id = 1, .node = 1);
	gen_flush(g);
}

static void put_work(struct gen *g, u64 t, u64 id, u64 status)
{
	GEN_EVENT(g, t + 1, device_clock, NULL, .device_id = 1, .before = t, .after = t + 1, .device = t + 500);
	GEN_EVENT(g, t + 2, work, "a=1", .id = id, .queue = 3, .kind = id % WORK_KINDS, .name = 1, .site = 1, .bytes = 8, .x = 4);
	GEN_EVENT(g, t + 3, call, "b=2", .begin = t, .kind = CALL_SUBMIT, .name = 1, .node = 1, .work = id, .works = 1);
	gen_flush(g);
	GEN_EVENT(g, t + 9, work_done, NULL, .id = id, .status = status, .queued = t + 501, .submitted = t + 502, .start = t + 503, .end = t + 506);
	gen_flush(g);
}

static void put_memory(struct gen *g, u64 t, u64 device)
{
	GEN_EVENT(g, t, device_alloc, "m", .id = device * 10, .device = device, .heap = device, .bytes = 4096, .node = 1);
	GEN_EVENT(g, t + 1, device_alloc, "b", .id = device * 10 + 1, .device = device, .parent = device * 10, .offset = 64, .length = 64, .node = 1);
	GEN_EVENT(g, t + 2, label, "w", .what = LABEL_MEMORY, .id = device * 10 + 1);
	gen_flush(g);
	GEN_EVENT(g, t + 3, device_free, NULL, .id = device * 10 + device - 1);
	gen_flush(g);
}

/* A process with two devices and, by fork, one that goes on with its numbers. */
static void seed_of_devices(u64 clock)
{
	struct gen own, g;
	u64 id;

	gen_init(&own, 0, 0, 0, write_short, NULL);
	gen_session(&own, 1000, 4096);
	gen_flush(&own);
	gen_init(&g, 5, 1000, 0, write_short, NULL);
	GEN_EVENT(&g, 1000, hello, "/x", .pid = 5);
	GEN_EVENT(&g, 1000, thread, "t", .tid = 5);
	put_devices(&g, clock);
	for (id = 1; id <= 5; id++)
		put_work(&g, 1000 + id * 20, id, id - 1);
	put_memory(&g, 1200, 1);
	put_memory(&g, 1210, 2);
	gen_init(&g, 6, 1300, 0, write_short, NULL);
	GEN_EVENT(&g, 1300, hello, "/x", .pid = 6, .ppid = 5, .flags = HELLO_FORKED, .parent = 1000);
	put_work(&g, 1310, 7, DONE_TIMED);
	GEN_EVENT(&own, 1400, died, NULL, .pid = 5, .born = 1000);
	gen_flush(&own);
}

static const char probe_rows[] =
	"#preset p\n"
	"a span name=\"{b} {s}\" b=$arg1 s=$arg2:string flops=2*b bytes=b ok=$retval==0 rate_t=b\n"
	"b dispatch name=name(cur($arg1)) queue=$arg2 of=$arg3 gx=$arg4 wait=$arg5\n"
	"c submit queue=$arg1\n"
	"d wait of=$arg1\n"
	"e copy bytes=$arg1 dir=$arg2 queue=$arg3\n"
	"f alloc heap=h ptr=$arg1 size=$arg2 was=$arg2 label=$arg3:string own=1\n"
	"g free heap=h ptr=$arg1 any=$arg2\n"
	"h counter value=$arg1\n"
	"i bind key=$arg1 name=$arg2:string flops=key n=key*2\n"
	"j alias key=$arg1 from=$arg2\n"
	"k set key=$arg1 val=$arg2 entry\n"
	"l time of=$arg1 start=$farg1 end=$farg2\n"
	"m mark name=\"{sym}\" sym=sym($arg1) when=$arg1\n"
	"n span kernel=1 entry a=+0($arg1):s64[4]\n";

enum { PROBE_ROWS = 14 };

static void put_probe(struct gen *g, u64 t, u32 site)
{
	/* numbers 1 to 5; the values of rows with a text are 1 and "ab" */
	static const char numbers[] = "\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\4\0\0\0\0\0\0\0\5\0\0\0\0\0\0";
	static const char with_text[] = "\1\0\0\0\0\0\0\0\2\0ab\0\0\0\0\0\0\0";
	static const struct { const char *at; u8 bytes; } values[PROBE_ROWS + 1] = {
		{ 0 }, { with_text, 20 }, { numbers, 40 }, { numbers, 8 }, { numbers, 8 }, { numbers, 24 }, { numbers, 16 }, { numbers, 16 }, { numbers, 8 },
		{ with_text, 12 }, { numbers, 16 }, { numbers, 16 }, { numbers, 24 }, { numbers, 8 }, { numbers, 32 },
	};
	struct rec_probe r = { .begin = t, .site = PROBE_WORD(site, site == 13, site == 14), .node = 1 };
	u32 len = values[site].bytes;
	u64 *body = gen_put(g, KIND_event | (u64)EVENT_probe << 3 | (u64)len << 11 | (t + 2 - g->last) << EVENT_DT_SHIFT, (u32)(sizeof(r) + len + 7) / 8);

	memcpy(body, &r, sizeof(r));
	memcpy((char *)body + sizeof(r), values[site].at, len);
	g->last = t + 2;
	gen_flush(g);
}

/* Every role twice, with handles, work and blocks that fit each other. */
static void seed_of_probes(void)
{
	struct gen own, g;
	u64 t = 1100;
	u32 i;

	gen_init(&own, 0, 0, 0, write_short, NULL);
	gen_session(&own, 1000, 4096);
	gen_event(&own, 1000, EVENT_probe_rows, NULL, 0, probe_rows);
	gen_flush(&own);
	gen_init(&g, 5, 1000, 0, write_short, NULL);
	GEN_EVENT(&g, 1000, hello, "/x", .pid = 5);
	gen_node(&g, 0, 0x400000);
	for (i = 1; i <= PROBE_ROWS; i++) {
		GEN_EVENT(&g, 1010, probe_site, "ab", .id = i, .row = i - 1);
		flush_when_long(&g);
	}
	gen_flush(&g);
	for (i = 0; i < 2 * PROBE_ROWS; i++, t += 5)
		put_probe(&g, t, i % PROBE_ROWS + 1);
	gen_init(&g, 6, 1300, 0, write_short, NULL);
	GEN_EVENT(&g, 1300, hello, "/x", .pid = 6, .ppid = 5, .flags = HELLO_FORKED, .parent = 1000);
	put_probe(&g, 1310, 2);
	GEN_EVENT(&own, 1400, died, NULL, .pid = 5, .born = 1000);
	gen_flush(&own);
}

static int write_probe_seed(const char *dir)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s/probes", dir);
	out = fopen(path, "w");
	if (!out)
		return 1;
	seed_of_probes();
	return fclose(out);
}

static int write_device_seeds(const char *dir)
{
	char path[4096];
	u64 clock;

	for (clock = 0; clock < DEVICE_CLOCKS; clock++) {
		snprintf(path, sizeof(path), "%s/devices-%llu", dir, (unsigned long long)clock);
		out = fopen(path, "w");
		if (!out)
			return 1;
		seed_of_devices(clock);
		fclose(out);
	}
	return 0;
}

static int write_seeds(const char *dir)
{
	char path[4096];
	u32 type;

	for (type = 0; type < EVENT_TYPES; type++) {
		if (!shape_of[type].name)
			continue;
		snprintf(path, sizeof(path), "%s/%s", dir, shape_of[type].name);
		out = fopen(path, "w");
		if (!out)
			return 1;
		seed_of_event(type);
		fclose(out);
	}
	return write_device_seeds(dir) | write_probe_seed(dir);
}

static void write_word(const char *name, u64 word)
{
	u32 i;

	printf("%s=\"", name);
	for (i = 0; i < 8; i++)
		printf("\\x%02x", (u32)(word >> i * 8) & 0xff);
	printf("\"\n");
}

static int write_dictionary(void)
{
	u32 i;

	for (i = 0; i < 8; i++)
		if (packed_of[i].name)
			write_word(packed_of[i].name, 0x7f0000001000 | i);
	for (i = 0; i < EVENT_TYPES; i++)
		if (shape_of[i].name)
			write_word(shape_of[i].name, KIND_event | (u64)i << 3 | (shape_of[i].text ? 2ull << 11 : 0));
	return 0;
}

static int run_file(const char *path)
{
	FILE *f = fopen(path, "r");
	u8 *data = must(malloc(1 << 20));
	size_t n;

	if (!f)
		return 1;
	n = fread(data, 1, 1 << 20, f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, n);
	free(data);
	return 0;
}

int main(int argc, char **argv)
{
	int i, bad = 0;

	if (argc == 3 && !strcmp(argv[1], "--seeds"))
		return write_seeds(argv[2]);
	if (argc == 2 && !strcmp(argv[1], "--dictionary"))
		return write_dictionary();
	for (i = 1; i < argc; i++)
		bad |= run_file(argv[i]);
	return bad;
}
#endif
