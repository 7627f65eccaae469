/*
 * test_summary.c - a session made by hand becomes a summary: figures, words, escapes, and sessions that lack everything.
 *
 *   main (a.out) -- run -- load -- [malloc]          3 MiB in 3 blocks
 *              `--- run -- [mmap]                    1 MiB
 *   child                                            1000 bytes
 */
#include "write/writer.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tap.h"

enum { MS = 1000000 };

static struct jit_name jit[] = {
	{ 0x1000, 0x100, "main" }, { 0x2000, 0x100, "run" }, { 0x3000, 0x100, "load \"weights\"\x1b[31m" },
};
static struct node node[] = {
	{ 0 }, { .pc = 0x1010 }, { .pc = 0x2010, .parent = 1 }, { .pc = 0x3010, .parent = 2 },
};
static struct holder at_peak[] = {
	{ .node = 3, .pool = POOL_MALLOC, .bytes = 3 << 20, .blocks = 3 },
	{ .node = 2, .pool = POOL_MMAP, .bytes = 1 << 20, .blocks = 1 },
	{ .node = 0, .pool = POOL_MALLOC, .bytes = 1000, .blocks = 1, .process = 1 },
};
static struct pool pool[] = {
	{ .name = "malloc", .peak = 3 << 20, .allocs = 12, .frees = 9, .now = 5, .blocks = 1 },
	{ .name = "mmap", .peak = 1 << 20, .allocs = 1 },
	{ .name = "file:/models/a.gguf", .kind = MAP_KIND_FILE, .peak = 1ll << 31, .allocs = 1, .frees = 1 },
};
static struct process images[2];
static struct process *process[] = { &images[0], &images[1] };
static char command[] = "./a.out\0--name\0two words\0\xff";
static char *notices[] = { "a child was not followed" }, *options[] = { "large=65536" };
static struct session session;

static void make_session(void)
{
	images[0] = (struct process){
		.pid = 100, .ppid = 1, .name = "a.out", .exe = "/x/a.out", .command = command, .command_bytes = sizeof command,
		.node = node, .nodes = 4, .jit = jit, .jits = 3, .pools = { pool, 3 }, .died = DIED_EXITED, .code = 3,
		.born = 1000 * MS, .ended = 2000 * MS, .peak_rss = 5 << 20, .total = { .peak = 4 << 20, .peak_ticks = 1500 * MS },
	};
	images[1] = (struct process){
		.index = 1, .pid = 101, .ppid = 100, .name = "child", .died = DIED_SIGNAL, .code = 11, .pools = { pool, 1 },
		.born = 1100 * MS, .ended = 1200 * MS, .total = { .peak = 1000 }, .not_followed = "/usr/bin/env",
	};
	session = (struct session){
		.command = command, .command_bytes = sizeof command, .process = process, .processes = 2, .pools = { pool, 3 },
		.total = { .peak = (4 << 20) + 1000, .peak_ticks = 1500 * MS, .at_peak = { at_peak, 3 } },
		.start = 1000 * MS, .end = 2000 * MS, .allocs = 13, .frees = 10, .allocated_bytes = 5 << 20, .temporary = 4,
		.live_bytes = 5, .live_blocks = 1, .events = 23, .losses = { .records = 7 },
		.notices = { notices, 1 }, .options = { options, 1 },
	};
}

/* Ticks are nanoseconds here. */
u64 session_ns(const struct session *s, u64 ticks)
{
	(void)s;
	return ticks;
}

static char *summary(bool json, bool colour)
{
	static char text[65536];
	int fd = memfd_create("summary", 0);
	struct symbols *y = symbols_new(false);
	int error = json ? summary_json(fd, &session, y) : summary_text(fd, &session, y, colour);
	ssize_t length = pread(fd, text, sizeof text - 1, 0);

	ok(!error && length > 0, "%s is written", json ? "JSON" : "text");
	text[length > 0 ? length : 0] = 0;
	symbols_free(y);
	close(fd);
	return text;
}

static void has(const char *text, const char *part)
{
	ok(strstr(text, part), "%s", part);
}

static void words(void)
{
	const char *text = summary(false, false);

	has(text, "./a.out --name 'two words' ");
	has(text, "1.00 s, exit status 3, 2 processes");
	has(text, "4.00 MiB at 500 ms: malloc 3.00 MiB, mmap 1.00 MiB; highest RSS 5.00 MiB");
	has(text, "3.00 MiB   75.0 %          3  malloc  load \"weights\"");
	has(text, "1.00 MiB   25.0 %          1  mmap    run");
	has(text, "0.0 %                     all others");
	has(text, "file:/models/a.gguf");
	has(text, "child: became env, not followed");
	has(text, "13 allocations (13/s, 30.8 % temporary) of 5.00 MiB in all");
	has(text, "5 B live in 1 blocks");
	has(text, "7 records were dropped");
	has(text, "a child was not followed");
	ok(!strstr(text, "stacks are cut"), "no word of what is not lost");
	ok(!strchr(text, 0x1b), "no escape of the program reaches the terminal");
	ok(strstr(summary(false, true), "\033[1m"), "colours when asked for");
}

static void keys(void)
{
	const char *text = summary(true, false);

	has(text, "\"command\": [\"./a.out\", \"--name\", \"two words\", \"\xef\xbf\xbd\"]");
	has(text, "\"exit\": {\"status\": 3}, \"start_ns\": 1000000000, \"duration_ns\": 1000000000");
	has(text, "\"totals\": {\"allocs\": 13, \"frees\": 10, \"allocated_bytes\": 5242880, \"live_at_exit_bytes\": 5, "
	    "\"live_at_exit_blocks\": 1, \"temporary_allocs\": 4");
	has(text, "\"peak\": {\"bytes\": 4195304, \"time_ns\": 1500000000, \"malloc_bytes\": 3146728, \"mmap_bytes\": 1048576");
	has(text, "{\"bytes\": 3145728, \"blocks\": 3, \"pool\": \"malloc\", \"pid\": 100");
	has(text, "\"function\": \"load \\\"weights\\\"\\u001b[31m\", \"file\": null, \"line\": null, \"module\": null");
	has(text, "\"name\": \"file:/models/a.gguf\", \"kind\": \"file\", \"peak_bytes\": 2147483648");
	has(text, "\"pid\": 101, \"ppid\": 100, \"name\": \"child\"");
	has(text, "\"exit\": {\"signal\": 11}");
	has(text, "\"losses\": {\"records\": 7, \"stacks\": 0, \"symbols\": 0");
	has(text, "\"overhead\": {\"events\": 23, \"events_per_s\": 23.000, \"hook_ns_estimate\": 690");
	has(text, "\"options\": [\"large=65536\"], \"notices\": [\"a child was not followed\"]");
}

/* A main process that becomes another program: its end is the end of the last image. */
static void exec_chain(void)
{
	images[0].died = DIED_EXEC;
	images[1].pid = images[0].pid;
	images[1].died = DIED_EXITED;
	images[1].code = 9;
	images[1].not_followed = NULL;
	ok(strstr(summary(true, false), "\"exit\": {\"status\": 9}, \"start_ns\""), "exit of the last image");
}

static void nothing(void)
{
	session = (struct session){ 0 };
	has(summary(false, false), "libmlprof.so was not loaded");
	has(summary(true, false), "\"exit\": {\"reason\": \"unknown\"}");
}

/* The same memory, taken by a driver while the program was in a wrapper of ours; and a device with memory of its own. */
static void devices(void)
{
	static struct module module = { .start = 0x9000, .end = 0x9100, .epoch_gone = UINT32_MAX, .path = "/opt/libmlprof.so" };
	static struct node nodes[] = {
		{ 0 }, { .pc = 0x1010 }, { .pc = 0x2010, .parent = 1 }, { .pc = 0x9010, .parent = 2 }, { .pc = 0x3010, .parent = 3 },
	};
	static struct device cpu = { .api = "OpenCL", .name = "cpu", .driver = "", .title = "OpenCL 0: cpu", .flags = DEVICE_CPU | DEVICE_HOST_MEMORY };
	static struct device *list[] = { &cpu };
	static struct holder held[] = { { .node = 4, .pool = POOL_MALLOC, .bytes = 3 << 20, .blocks = 3 } };
	const char *text;

	make_session();
	images[0].node = nodes;
	images[0].nodes = 5;
	images[0].module = &module;
	images[0].modules = images[0].devices = 1;
	images[0].device = list;
	session.total.at_peak = session.with_devices.at_peak = (struct holder_list){ held, 1 };
	session.with_devices.peak = session.total.peak;
	text = summary(false, false);
	has(text, "(driver of OpenCL 0: cpu)");
	ok(!strstr(text, "with devices"), "no second peak where the host has it all");
	text = summary(true, false);
	has(text, "\"driver_call\": null, \"driver_of\": \"OpenCL 0: cpu\"");
	session.with_devices.peak += 1 << 20;
	session.devices_then = 1 << 20;
	has(summary(false, false), "with devices 5.00 MiB at 0 ns: host 4.00 MiB, devices 1.00 MiB");
	make_session();
}

int main(void)
{
	make_session();
	words();
	keys();
	exec_chain();
	nothing();
	devices();
	return done();
}
