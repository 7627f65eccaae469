/*
 * test_perfetto.c - a session made by hand becomes a trace.
 *
 *   test_perfetto FILE     also leaves the trace in FILE, for the trace processor (e2e tests ask it with SQL)
 *
 * What is checked here needs no schema: whole packets, the same bytes twice, a full disk.
 */
#include "../../collector/write/writer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tap.h"

enum { MS = 1000000, FIRST = 1000 * MS, END = FIRST + 1000 * MS, MANY = 30000 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- a session --------------------------------------------------------------------- */

static struct jit_name jit[] = {
	{ 0x10000, 0x1000, "main" }, { 0x20000, 0x1000, "_ZN5model7forwardEi" }, { 0x30000, 0x1000, "load \xff weights" },
};
static struct node node[] = {
	{ 0 }, { .pc = 0x10010 }, { .pc = 0x20020, .parent = 1 }, { .pc = 0x30030, .parent = 1 }, { .pc = 0x777, .parent = 2 },
};
static struct pool pool[] = {
	{ .name = "malloc", .peak = 5000000, .allocs = 5, .frees = 3 }, { .name = "mmap", .peak = 1 << 20 },
	{ .name = "file:/models/a.gguf", .kind = MAP_KIND_FILE },
};
static struct holder at_peak[] = {
	{ .node = 2, .pool = POOL_MALLOC, .bytes = 4000000, .blocks = 2, .allocs = 4, .allocated_bytes = 9000000 },
	{ .node = 3, .pool = POOL_MMAP, .bytes = 1 << 20, .blocks = 1 },
	{ .node = 4, .pool = POOL_MALLOC, .bytes = 900000, .blocks = 9, .allocs = 9 },
	{ .node = 0, .pool = POOL_MALLOC, .bytes = 100000, .blocks = 1, .allocs = 1 },
};
static struct holder at_exit[] = {
	{ .node = 2, .pool = POOL_MALLOC, .bytes = 2000000, .blocks = 1, .allocs = 4, .allocated_bytes = 9000000 },
	{ .node = 4, .pool = POOL_MALLOC, .bytes = 100000, .blocks = 1, .allocs = 9, .allocated_bytes = 900000 },
};
static struct thread threads[] = { { .tid = 100, .name = "main" }, { .tid = 105, .name = "worker \xc3" } };
static struct process images[3];
static struct process *process[] = { &images[0], &images[1], &images[2] };
static struct span span[] = {
	{ FIRST + 100 * MS, FIRST + 500 * MS, 0x7f0000001000, 2000000, 2, 100, POOL_MALLOC, 0 },
	{ FIRST + 150 * MS, 0, 0x7f0000401000, 2000000, 2, 105, POOL_MALLOC, 0 },
	{ FIRST + 160 * MS, FIRST + 170 * MS, 0x7f0000801000, 3000000, 3, 105, POOL_MMAP, 0 },
	{ FIRST + 500 * MS, FIRST + 600 * MS, 0x7f0000001000, 1500000, 3, 100, POOL_MALLOC, 0 },
	{ FIRST + 710 * MS, 0, 0x7f0000001000, 1600000, 2, 100, POOL_MALLOC, 1 },
	{ FIRST + 720 * MS, 0, 0x7f0000001000, 1700000, 2, 101, POOL_MALLOC, 2 },
};
static char *options[] = { "large=1500000" }, *notices[] = { "one thing happened" };
static char command[] = "./model\0--size\0very large", uts[] = "Linux\0006.1\0#1 SMP\0x86_64\0";
static struct session session;

static void make_image(u32 index, u32 pid, u32 ppid, const char *name, u64 born, u64 ended, int died, int code)
{
	struct process *p = &images[index];

	*p = (struct process){ .index = index, .pid = pid, .ppid = ppid, .uid = 1000, .born = born, .ended = ended };
	p->name = (char *)name;
	p->died = died;
	p->code = code;
	p->command = command;
	p->command_bytes = sizeof(command);
	p->node = node;
	p->nodes = COUNT(node);
	p->jit = jit;
	p->jits = COUNT(jit);
	p->pools = (struct pool_list){ pool, COUNT(pool) };
	p->total = (struct scope){ .peak = 5000000 + (1 << 20), .peak_ticks = born + 200 * MS, .at_peak = { at_peak, COUNT(at_peak) } };
	p->at_exit = (struct holder_list){ at_exit, COUNT(at_exit) };
}

static void make_session(void)
{
	make_image(0, 100, 1, "model", FIRST, FIRST + 700 * MS, DIED_EXEC, 0);
	make_image(1, 100, 1, "python3", FIRST + 700 * MS, END, DIED_EXITED, 3);
	make_image(2, 101, 100, "child", FIRST + 700 * MS, FIRST + 950 * MS, DIED_SIGNAL, SIGKILL);
	images[0].thread = threads;
	images[0].threads = COUNT(threads);
	threads[0].track = threads[1].track = 0;
	threads[1].end = FIRST + 650 * MS;
	session = (struct session){
		.command = command, .command_bytes = sizeof(command), .uts = uts,
		.head = { .large = 1500000, .tick_kind = TICK_MONOTONIC, .page_size = 4096, .cpus = 2, .ram = 1ull << 33, .id0 = 7, .id1 = 9 },
		.first_clock = { FIRST, FIRST, FIRST + 5000ull * MS, FIRST + 7000ull * MS },
		.options = { options, 1 }, .notices = { notices, 1 },
		.process = process, .processes = COUNT(process), .pools = { pool, COUNT(pool) },
		.total = { .peak = 6048576, .peak_ticks = FIRST + 200 * MS },
		.span = span, .spans = COUNT(span), .large = 1500000,
		.start = FIRST, .end = END, .allocs = 14, .frees = 12, .losses = { .records = 1, .texts = 2 },
	};
}

/* What the writer asks of the model, for a session that no model made. */
u64 session_ns(const struct session *s, u64 ticks)
{
	(void)s;
	return ticks;
}

struct module *process_module(const struct process *p, u64 pc, u32 epoch)
{
	(void)p, (void)pc, (void)epoch;
	return NULL;
}

/* ---- writing it -------------------------------------------------------------------- */

static void write_points(const struct listener *l, struct process *p)
{
	for (u32 i = 0; i <= 200; i++)
		l->point(l->to, p, CURVE_MALLOC, p->born + (u64)i * MS, i * 25000);
	l->point(l->to, p, CURVE_TOTAL, p->born, 0);
	l->point(l->to, p, CURVE_TOTAL, p->born + 200 * MS, p->total.peak);
	l->point(l->to, p, CURVE_FILES, p->born + 1 * MS, 0);
	l->point(l->to, p, CURVE_MMAP, p->born + 1 * MS, 0);
	l->point(l->to, p, CURVE_MMAP, p->born + 2 * MS, 1 << 20);
}

static void write_samples(const struct listener *l, struct process *p)
{
	for (u32 i = 0; i < 10; i++) {
		struct rec_sample s = {
			.pid = p->pid, .rss_anon = i << 20, .rss_file = 4 << 20, .minor = i * 100, .cpu = (u64)i * 10 * MS,
		};

		l->sample(l->to, p, p->born + (u64)i * 20 * MS, &s, 50);
	}
}

static int write_trace(const char *path, struct session *s)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	struct perfetto *w = perfetto_open(fd);
	struct listener l = perfetto_listener(w);
	struct symbols *y = symbols_new(false);

	l.begin(l.to, s);
	for (u32 i = 0; i < s->processes; i++) {
		struct process *p = s->process[i];

		l.process(l.to, p);
		for (u32 j = 0; j < p->threads; j++)
			l.thread(l.to, p, &p->thread[j]);
		write_points(&l, p);
		write_samples(&l, p);
	}
	l.point(l.to, NULL, CURVE_TOTAL, FIRST + 200 * MS, 6048576);
	perfetto_flush(w);
	perfetto_finish(w, s, y);
	symbols_free(y);
	return perfetto_close(w);
}

static char *read_file(const char *path, size_t *len)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *bytes = fd >= 0 && !fstat(fd, &st) ? malloc(st.st_size + 1) : NULL;

	*len = bytes ? read(fd, bytes, st.st_size) : 0;
	close(fd);
	return bytes;
}

/* Number of packets if the bytes are nothing but whole packets, else -1. */
static long count_packets(const char *bytes, size_t len)
{
	long packets = 0;

	for (size_t at = 0; at < len; packets++) {
		size_t size = 0;

		if (bytes[at++] != 0x0a)
			return -1;
		for (int shift = 0; at < len; shift += 7) {
			size |= (size_t)(bytes[at] & 0x7f) << shift;
			if (!(bytes[at++] & 0x80))
				break;
		}
		if (size > len - at)
			return -1;
		at += size;
	}
	return packets;
}

/* ---- tests ------------------------------------------------------------------------- */

static void same_bytes_twice(const char *path)
{
	char other[4096];
	size_t len, other_len;

	snprintf(other, sizeof(other), "%s.again", path);
	make_session();
	ok(write_trace(path, &session) == 0, "a trace is written");
	make_session();
	ok(write_trace(other, &session) == 0, "and once more");

	char *a = read_file(path, &len), *b = read_file(other, &other_len);

	ok(len == other_len && !memcmp(a, b, len), "the same bytes (%zu)", len);
	ok(count_packets(a, len) > 700, "%ld whole packets", count_packets(a, len));
	ok(memmem(a, len, "load ? weights", 14), "bytes that are not UTF-8 are replaced");
	free(a);
	free(b);
	unlink(other);
}

/* Every place at which the disk can become full. */
static void full_disk(const char *path)
{
	char full[4096];
	struct rlimit limit, before;
	int bad = 0, wrong_error = 0;
	size_t len;

	snprintf(full, sizeof(full), "%s.full", path);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	for (u32 size = 0; size < 20000; size += 97) {
		limit = (struct rlimit){ size, before.rlim_max };
		setrlimit(RLIMIT_FSIZE, &limit);
		make_session();
		wrong_error += write_trace(full, &session) != -EFBIG;
		setrlimit(RLIMIT_FSIZE, &before);

		char *bytes = read_file(full, &len);

		bad += count_packets(bytes, len) < 0 || len > size;
		free(bytes);
	}
	ok(!wrong_error, "a write that fails is reported");
	ok(!bad, "and the file ends on a whole packet");
	unlink(full);
}

/* More stacks than are drawn one by one, 57 deep: small, and the sums stay. */
static void many_stacks(const char *path)
{
	char many[4096];
	struct node *deep = calloc(MANY * 4 + 64, sizeof(*deep));
	struct holder *holder = calloc(MANY, sizeof(*holder));
	size_t len;
	u32 nodes = 1, trunk = 0;

	for (; nodes < 54; nodes++) {
		deep[nodes] = (struct node){ .pc = 0x10001 + nodes, .parent = trunk };
		trunk = nodes;
	}
	for (u32 i = 0; i < MANY; i++) {
		u32 parent = trunk;

		for (u32 j = 0; j < 4; j++, nodes++) {
			deep[nodes] = (struct node){ .pc = 0x20000000ull + (i >> (9 - 3 * j)) * 16 + j, .parent = parent };
			parent = nodes;
		}
		holder[i] = (struct holder){ .node = parent, .bytes = 1000000 / (i + 1) + 1, .blocks = 1, .allocs = 1 };
	}
	make_session();
	images[0].node = deep;
	images[0].nodes = nodes;
	images[0].total.at_peak = (struct holder_list){ holder, MANY };
	images[0].at_exit = (struct holder_list){ holder, MANY };
	session.processes = 1;
	session.spans = 0;
	snprintf(many, sizeof(many), "%s.many", path);
	ok(write_trace(many, &session) == 0, "30000 stacks, 57 deep, twice");

	char *bytes = read_file(many, &len);

	ok(len < 15000000, "take %zu bytes", len);
	ok(memmem(bytes, len, "[small stacks]", 14), "the smallest are put together");
	free(bytes);
	free(deep);
	free(holder);
}

int main(int argc, char **argv)
{
	const char *path = argc > 1 ? argv[1] : "test_perfetto.perfetto-trace";

	same_bytes_twice(path);
	full_disk(path);
	many_stacks(path);
	return done();
}
