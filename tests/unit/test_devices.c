/*
 * test_devices.c - device work, calls and memory, from records to the model and to a trace.
 *
 *   test_devices X.perfetto-trace      also leaves the trace there, and the summaries beside it (e2e tests look at them)
 *
 * Two devices: "OpenCL 0" whose memory is the host's and whose clock is known by bounds only, "Vulkan 0" with memory in two
 * heaps and a calibrated clock that runs 40 ppm fast.
 */
#include "../../collector/util/array.h"
#include "../../collector/write/writer.h"
#include "pushed.h"
#include "tap.h"
#include "written.h"

#include <fcntl.h>
#include <math.h>
#include <unistd.h>

enum { US = 1000, MS = 1000000, BORN = 2 * MS, CL = 1, VK = 2, CL_QUEUE = 11, CL_QUEUE_2 = 12, VK_QUEUE = 13 };
enum { SGEMM = 1, COPY, ENQUEUE, FINISH, SUBMIT, CREATE, LAYER, READ };

#define CL_OFFSET 7777000000000ull      /* device - host */

static u64 cl_clock(u64 host_ns) { return host_ns + CL_OFFSET; }
static u64 vk_clock(u64 host_ns) { return (u64)((double)host_ns * (1 + 40e-6)) + 123456789; }

/* ---- what is heard ------------------------------------------------------------------------------ */

struct heard {
	struct work work[4096];
	char name[4096][32];
	u32 works, calls, waits, memories, memory_ends, never_freed, bounds;
	i64 vk_highest, heap_highest[2];
	u64 overlaps;
	u64 last_end;
};

static struct heard heard;
static struct listener writer;

static void hear_work(void *to, struct process *p, const struct work *w)
{
	if (heard.works < 4096) {
		heard.work[heard.works] = *w;
		snprintf(heard.name[heard.works], sizeof(heard.name[0]), "%s", w->name);
	}
	heard.works++;
	if (writer.work)
		writer.work(to, p, w);
}

static void hear_call(void *to, struct process *p, struct thread *t, const struct call *c)
{
	heard.calls++;
	heard.waits += c->kind == CALL_WAIT;
	if (writer.call)
		writer.call(to, p, t, c);
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
	heard.never_freed += !m->died;
	heard.bounds += m->bounds;
	if (writer.memory_end)
		writer.memory_end(to, p, m);
}

static void hear_device_point(void *to, struct process *p, struct device *d, int heap, u64 ticks, i64 bytes)
{
	i64 *highest = heap < 0 ? &heard.vk_highest : &heard.heap_highest[heap & 1];

	if (!strcmp(d->api, "Vulkan") && bytes > *highest)
		*highest = bytes;
	if (writer.device_point)
		writer.device_point(to, p, d, heap, ticks, bytes);
}

static struct listener listener(struct listener to)
{
	struct listener l = to;

	memset(&heard, 0, sizeof(heard));
	writer = to;
	l.work = hear_work;
	l.call = hear_call;
	l.memory = hear_memory;
	l.memory_end = hear_memory_end;
	l.device_point = hear_device_point;
	return l;
}

/* ---- records ------------------------------------------------------------------------------------- */

/* Text with NULs in it. */
static void event_text(struct gen *g, u64 t, u32 type, const void *fields, size_t bytes, const char *text, size_t len)
{
	u64 *body = gen_put(g, KIND_event | (u64)type << 3 | (u64)len << 11 | (t - g->last) << EVENT_DT_SHIFT, (u32)(bytes + len + 7) / 8);

	memcpy(body, fields, bytes);
	memcpy((char *)body + bytes, text, len);
	g->last = t;
}

#define EVENT_TEXTS(g, t, name, text, ...) \
	event_text(g, t, EVENT_##name, &(struct rec_##name) { __VA_ARGS__ }, sizeof(struct rec_##name), text, sizeof(text))

static void begin(struct gen *own, struct gen *g, u32 pid, u64 born)
{
	if (own) {
		gen_init(own, 0, 0, 0, push, NULL);
		gen_session(own, 1000, 4096);
		gen_flush(own);
	}
	gen_init(g, pid, born, 0, push, NULL);
	GEN_EVENT(g, born, hello, "/bin/model", .pid = pid, .ppid = 1);
	GEN_EVENT(g, born, thread, "main", .tid = pid);
	gen_node(g, 0, 0x400010);
	gen_node(g, 1, 0x400020);
}

static void names(struct gen *g, u64 t)
{
	static const char *const text[] = {
		[SGEMM] = "sgemm", [COPY] = "copy", [ENQUEUE] = "clEnqueueNDRangeKernel", [FINISH] = "clFinish",
		[SUBMIT] = "vkQueueSubmit", [CREATE] = "clCreateBuffer", [LAYER] = "layer", [READ] = "clEnqueueReadBuffer",
	};

	for (u32 i = 1; i < sizeof(text) / sizeof(*text); i++)
		GEN_EVENT(g, t, name, text[i], .id = i);
}

static void devices(struct gen *g, u64 t)
{
	EVENT_TEXTS(g, t, device, "OpenCL\0pthread-cpu\0PoCL 3.1", .id = CL, .flags = DEVICE_CPU | DEVICE_HOST_MEMORY, .clock = DEVICE_CLOCK_BOUNDED);
	EVENT_TEXTS(g, t, device, "Vulkan\0Big GPU\0driver", .id = VK, .flags = DEVICE_GPU, .clock = DEVICE_CLOCK_CALIBRATED);
	GEN_EVENT(g, t, queue, "queue 0", .id = CL_QUEUE, .device = CL);
	GEN_EVENT(g, t, queue, "", .id = CL_QUEUE_2, .device = CL, .flags = QUEUE_OUT_OF_ORDER);
	GEN_EVENT(g, t, queue, "compute", .id = VK_QUEUE, .device = VK);
}

/* An enqueue of 10 us that began at t, whose kernel runs from `start` to `end` of the host's time. */
static void enqueue(struct gen *g, u64 t, u64 id, u64 queue)
{
	EVENT_TEXTS(g, t + 9 * US, work, "arg=7\0pointer=0x1000\0note=a text", .id = id, .queue = queue, .kind = WORK_KERNEL, .name = SGEMM, .x = 1024,
		    .y = 16, .z = 1, .local = PACK3(64, 1, 1));
	GEN_EVENT(g, t + 10 * US, call, NULL, .begin = t, .kind = CALL_ENQUEUE, .name = ENQUEUE, .node = 2, .work = id, .works = 1);
}

static void finished(struct gen *g, u64 t, u64 id, u64 queued, u64 start, u64 end)
{
	GEN_EVENT(g, t, work_done, NULL, .id = id, .status = DONE_TIMED, .queued = cl_clock(queued), .submitted = cl_clock(queued + US),
		  .start = cl_clock(start), .end = cl_clock(end));
}

/* ---- the OpenCL device ------------------------------------------------------------------------------ */

enum { KERNELS = 50 };

/* In order, 200 us each; then two that overlap, one that fails, one without times, one that never ends. */
static u64 opencl_work(struct gen *g, u64 t)
{
	u64 id = 1;

	for (; id <= KERNELS; id++, t += 300 * US) {
		enqueue(g, t, id, CL_QUEUE);
		finished(g, t + 240 * US, id, t + 4 * US, t + 20 * US, t + 220 * US);
		GEN_EVENT(g, t + 250 * US, call, NULL, .begin = t + 11 * US, .kind = CALL_WAIT, .name = FINISH);
	}
	enqueue(g, t, id, CL_QUEUE_2);
	enqueue(g, t + 20 * US, id + 1, CL_QUEUE_2);
	enqueue(g, t + 40 * US, id + 2, CL_QUEUE_2);
	enqueue(g, t + 60 * US, id + 3, CL_QUEUE_2);
	enqueue(g, t + 80 * US, id + 4, CL_QUEUE_2);
	finished(g, t + 500 * US, id + 1, t + 24 * US, t + 110 * US, t + 400 * US);
	finished(g, t + 501 * US, id, t + 4 * US, t + 100 * US, t + 300 * US);
	GEN_EVENT(g, t + 510 * US, work_done, NULL, .id = id + 2, .status = DONE_FAILED);
	GEN_EVENT(g, t + 520 * US, work_done, NULL, .id = id + 3, .status = DONE_UNTIMED);
	return t + 600 * US;
}

static void opencl_memory(struct gen *g, u64 t)
{
	EVENT_TEXTS(g, t, device_alloc, "buffer\0flags=READ_WRITE", .id = 1, .device = CL, .bytes = 1 << 20, .length = 1 << 20, .node = 2);
	GEN_EVENT(g, t + US, device_alloc, "sub-buffer", .id = 2, .device = CL, .parent = 1, .offset = 4096, .length = 8192, .node = 2);
	GEN_EVENT(g, t + 2 * US, label, "weights", .what = LABEL_MEMORY, .id = 2);
	GEN_EVENT(g, t + 3 * US, device_free, NULL, .id = 2);
	GEN_EVENT(g, t + 4 * US, device_free, NULL, .id = 1);
}

/* ---- the Vulkan device -------------------------------------------------------------------------------- */

static void pair(struct gen *g, u64 t)
{
	GEN_EVENT(g, t, device_clock, NULL, .device_id = VK, .before = t - US, .after = t, .device = vk_clock(t - US / 2));
}

static u64 vulkan_work(struct gen *g, u64 t)
{
	u64 id = 1000;

	GEN_EVENT(g, t, site, NULL, .id = 1, .node = 1);
	for (u32 i = 0; i < 20; i++, t += 20 * MS) {
		pair(g, t);
		for (u32 j = 0; j < 2; j++)
			GEN_EVENT(g, t + 2 * US, work, NULL, .id = id + j, .queue = VK_QUEUE, .kind = j ? WORK_COPY : WORK_KERNEL,
				  .name = j ? COPY : LAYER, .site = 1, .bytes = j ? 4096 : 0, .x = j ? 0 : 8);
		GEN_EVENT(g, t + 10 * US, call, NULL, .begin = t + US, .kind = CALL_SUBMIT, .name = SUBMIT, .node = 2, .work = id, .works = 2);
		for (u32 j = 0; j < 2; j++)
			GEN_EVENT(g, t + 11 * MS, work_done, NULL, .id = id + j, .status = DONE_TIMED, .start = vk_clock(t + 100 * US + j * 5 * MS),
				  .end = vk_clock(t + 100 * US + (j + 1) * 5 * MS));
		id += 2;
	}
	pair(g, t);
	return t;
}

/* 3 MiB in heap 0, 2 MiB in heap 1, never freed; 1 MiB of heap 0 freed before. */
static u64 vulkan_memory(struct gen *g, u64 t)
{
	GEN_EVENT(g, t, device_alloc, "memory", .id = 101, .device = VK, .heap = 0, .bytes = 1 << 20, .node = 1);
	GEN_EVENT(g, t + US, device_alloc, "memory", .id = 102, .device = VK, .heap = 0, .bytes = 2 << 20, .node = 2,
		  .flags = MEMORY_DEVICE_LOCAL);
	GEN_EVENT(g, t + 2 * US, device_free, NULL, .id = 101);
	GEN_EVENT(g, t + 3 * US, device_alloc, "memory", .id = 103, .device = VK, .heap = 1, .bytes = 2 << 20, .node = 2);
	GEN_EVENT(g, t + 4 * US, device_alloc, "buffer", .id = 104, .device = VK, .parent = 102, .offset = 0, .length = 100, .node = 2);
	return t + 5 * US;
}

/* ---- one whole run -------------------------------------------------------------------------------------- */

static void whole_run(struct gen *own, struct gen *g)
{
	u64 t = BORN + 10 * US;

	begin(own, g, 50, BORN);
	names(g, t);
	devices(g, t);
	gen_alloc(g, t + US, 0x1000, 4 << 20, 2);
	opencl_memory(g, t + 2 * US);
	t = opencl_work(g, t + 100 * US);
	gen_free(g, t, 0x1000);
	t = vulkan_memory(g, t + 10 * US);
	t = vulkan_work(g, t + MS);
	gen_flush(g);
	GEN_EVENT(own, t, jit_name, "main", .pid = 50, .start = 0x400000, .size = 0x11);
	GEN_EVENT(own, t, jit_name, "run_model", .pid = 50, .start = 0x400018, .size = 0x11);
	GEN_EVENT(own, t + MS, died, NULL, .pid = 50, .born = BORN, .how = DIED_EXITED);
	gen_flush(own);
}

static const struct work *work_of(u64 id)
{
	for (u32 i = 0; i < heard.works && i < 4096; i++)
		if (heard.work[i].id == id)
			return &heard.work[i];
	return NULL;
}

static void check_works(const struct session *s)
{
	const struct device *cl = s->process[0]->device[0], *vk = s->process[0]->device[1];
	u64 worst = 0, first = BORN + 110 * US, outside = 0;

	ok(heard.works == KERNELS + 5 + 40, "every piece of work is told: %u", heard.works);
	for (u32 i = 0; i < KERNELS; i++) {
		const struct work *w = work_of(i + 1);
		u64 t = first + i * 300ull * US, off = w ? (u64)llabs((i64)(w->start_ns - (t + 20 * US))) : UINT64_MAX;

		worst = off > worst ? off : worst;
		outside += !w || w->start_ns < t || w->end_ns > t + 240 * US;
	}
	ok(worst <= 6 * US, "bounds of 10 us give times right to %llu ns", (unsigned long long)worst);
	ok(!outside, "nothing outside of its call and the moment its end was noticed");
	ok(cl->match.residual_ns <= 6 * US && cl->match.residual_ns > 0, "residual %llu ns", (unsigned long long)cl->match.residual_ns);
	ok(cl->done[DONE_TIMED] == KERNELS + 2 && cl->done[DONE_FAILED] == 1 && cl->done[DONE_UNTIMED] == 1 && cl->done[DONE_NEVER] == 1,
	   "ends are counted");
	ok(s->losses.unfinished == 1 && s->losses.untimed == 1 && s->losses.failed == 1 && !s->losses.unknown_ids, "and what is missing");
	ok(cl->kernels == 1 && cl->kernel[0].calls == KERNELS + 4 && cl->kernel[0].unfinished == 1 && cl->kernel[0].timed == KERNELS + 2, "kernels by name");
	ok(cl->kernel[0].total_ns == KERNELS * 200ull * US + 490 * US && cl->kernel[0].min_ns == 200 * US && cl->kernel[0].max_ns == 290 * US,
	   "their times are the device's own");
	ok(cl->busy_ns == KERNELS * 200ull * US + 300 * US, "busy %llu ns: overlap counts once", (unsigned long long)cl->busy_ns);
	ok(vk->kernels == 1 && vk->kind[WORK_COPY].calls == 20 && vk->kind[WORK_COPY].bytes == 20 * 4096, "copies and their bytes");
	worst = 0;
	for (u32 i = 0; i < 40; i++) {
		const struct work *w = work_of(1000 + i);
		u64 host = (u64)((double)(w->start - 123456789) / (1 + 40e-6)), off = (u64)llabs((i64)(w->start_ns - host));

		worst = off > worst ? off : worst;
	}
	ok(worst < 600, "a clock that runs 40 ppm fast is followed to %llu ns", (unsigned long long)worst);
	ok(fabs(vk->match.rate_ppm + 40) < 4, "its rate is known: %.1f ppm", vk->match.rate_ppm);
	ok(work_of(1000)->node && work_of(1)->node == 0, "work knows where it was recorded");
}

static void check_memory(const struct session *s)
{
	const struct process *p = s->process[0];
	const struct device *cl = p->device[0], *vk = p->device[1];
	const struct pool *cl_pool = &p->pools.at[cl->pool], *vk_pool = &p->pools.at[vk->pool];

	ok(cl_pool->peak == 1 << 20 && cl_pool->now == 0 && cl->allocs == 1 && cl->frees == 1 && cl->objects == 1, "OpenCL memory");
	ok(vk_pool->peak == 4 << 20 && vk_pool->now == 4 << 20 && vk->allocs == 3 && vk->frees == 1, "Vulkan memory, exact peak and what is left");
	ok(vk->heap[0].peak == 3 << 20 && vk->heap[0].now == 2 << 20 && vk->heap[1].peak == 2 << 20, "by heap");
	ok(heard.vk_highest == 4 << 20 && heard.heap_highest[0] == 2 << 20 && heard.heap_highest[1] == 2 << 20, "curves");
	ok(s->total.peak == 4 << 20, "the host's peak is the host's");
	ok(s->with_devices.peak == 4 << 20 && s->devices_then == 0, "host and devices: what lies in the host's heap counts once (%lld)",
	   (long long)s->with_devices.peak);
	ok(p->device_peak[1].count == 1 && p->device_peak[1].at[0].bytes == 4 << 20 && p->device_peak[1].at[0].blocks == 2, "who held the device's peak");
	ok(heard.memories == 6 && heard.memory_ends == 6 && heard.never_freed == 3, "births and ends are told");
	ok(heard.bounds == 2, "with what lay inside");
}

static void check_calls(const struct session *s)
{
	u64 waits = 0, total = 0;

	for (u32 i = 0; i < s->calls; i++)
		if (s->call[i].kind == CALL_WAIT) {
			waits += s->call[i].calls;
			total += s->call[i].total_ns;
		}
	ok(heard.calls == 2 * KERNELS + 5 + 20 && heard.waits == KERNELS, "calls");
	ok(waits == KERNELS && total == KERNELS * 239ull * US, "the host waited %llu ns", (unsigned long long)total);
}

static const char *const json_parts[] = {
	"\"devices\": [{\"name\": \"pthread-cpu\", \"api\": \"OpenCL\", \"driver\": \"PoCL 3.1\", \"title\": \"OpenCL 0: pthread-cpu\"",
	"\"peak_bytes\": 1048576, \"peak_time_ns\": 2012000, \"allocs\": 1, \"frees\": 1, \"objects\": 1, \"live_at_exit_bytes\": 0",
	"\"busy_ns\": 10300000, \"kernels\": 53, \"works_timed\": 52",
	"\"kernels\": [{\"name\": \"sgemm\", \"device\": \"OpenCL 0: pthread-cpu\", \"pid\": 50, \"calls\": 54, \"failed\": 1, \"unfinished\": 1, \"timed\": 52",
	"\"total_ns\": 10490000, \"avg_ns\": 201730, \"min_ns\": 200000, \"max_ns\": 290000",
	"\"transfers\": [{\"kind\": \"copy\", \"device\": \"Vulkan 0: Big GPU\", \"pid\": 50, \"calls\": 20, \"failed\": 0, \"unfinished\": 0, \"timed\": 20, \"bytes\": 81920",
	"\"clock\": {\"kind\": \"calibrated\", \"match\": \"line\"",
	"\"waits\": {\"calls\": 50, \"total_ns\": 11950000, \"by_name\": [{\"name\": \"clFinish\"",
	"\"works_unfinished\": 1, \"works_untimed\": 1, \"works_unsized\": 0, \"works_failed\": 1, \"works_not_drawn\": 0, \"unknown_ids\": 0",
	"\"peak_with_devices\": {\"bytes\": 4194304",
	NULL,
};

static const char *const text_parts[] = {
	"OpenCL 0: pthread-cpu  (times within", "Vulkan 0: Big GPU", "sgemm  on OpenCL 0: pthread-cpu  (1 failed)  (1 without times)  (1 unfinished)",
	"host blocked on device 11.9 ms in 50 calls: clFinish 11.9 ms (50)", "1 pieces of device work were not over", NULL,
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
	check_works(feed.session);
	check_calls(feed.session);
	check_memory(feed.session);
	perfetto_finish(w, feed.session, y);
	summary(path, ".summary.json", feed.session, y, json_parts);
	summary(path, ".summary.txt", feed.session, y, text_parts);
	symbols_free(y);
	ok(!perfetto_close(w), "the trace is written");
	feed_free(&feed);
}

static const char *const overlap_parts[] = {
	"200 us in all, in a run of 1", "us: queues overlap  on OpenCL 0: pthread-cpu", "host blocked on device 180 us over 2 threads in 2 calls: clFinish 180 us (2)", NULL,
};

/* Two queues are at work and two threads wait, all at the same time. */
static void overlap(void)
{
	struct symbols *y = symbols_new(false);
	struct gen own, g, other;
	u64 born = 10 * US, t = born + 10 * US;

	feed = feed_new(NULL);
	begin(&own, &g, 51, born);
	names(&g, born);
	devices(&g, born);
	gen_init(&other, 51, born, 1, push, NULL);
	GEN_EVENT(&other, born, thread, "other", .tid = 52);
	enqueue(&g, t - 10 * US, 1, CL_QUEUE);
	enqueue(&g, t, 2, CL_QUEUE_2);
	for (u64 id = 1; id <= 2; id++)
		finished(&g, t + 110 * US, id, t - 1, t + 5 * US, t + 105 * US);
	GEN_EVENT(&g, t + 110 * US, call, NULL, .begin = t + 20 * US, .kind = CALL_WAIT, .name = FINISH);
	GEN_EVENT(&other, t + 110 * US, call, NULL, .begin = t + 20 * US, .kind = CALL_WAIT, .name = FINISH);
	gen_flush(&g);
	gen_flush(&other);
	feed_end(&feed);
	summary("test_overlap.perfetto-trace", ".summary.txt", feed.session, y, overlap_parts);
	symbols_free(y);
	feed_free(&feed);
}

int main(int argc, char **argv)
{
	run(argc > 1 ? argv[1] : "test_devices.perfetto-trace");
	overlap();
	return done();
}
