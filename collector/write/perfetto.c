/*
 * perfetto.c - the trace: what is written when.
 *
 *   open      version                                    an empty file would not be a trace
 *   begin     clocks, machine, identity                  so that every prefix of the file can be read
 *   listener  processes, threads, counters, samples,     as they happen
 *             calls, device work, device memory, what probes read
 *   finish    instants, large blocks, names of streamed stacks, heap dumps, attributes
 *
 * The trace processor sorts by time at the end, so the order in the file is free except that a track comes before
 * its events. The same session gives the same bytes: nothing here looks at a clock or at the value of a pointer.
 */
#include "perfetto.h"

#include <errno.h>
#include <unistd.h>

struct perfetto *perfetto_open(int fd)
{
	struct perfetto *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->fd = fd;
	w->next_uuid = 1;
	w->next_sequence = SEQ_FIRST_FREE;

	off_t at = lseek(fd, 0, SEEK_CUR);

	w->written = at > 0 ? at : 0;
	head_open(w);
	return w;
}

static void begin(void *to, struct session *s)
{
	struct perfetto *w = to;

	w->session = s;
	head_begin(w);
}

static void process(void *to, struct process *p)
{
	tracks_process(to, p);
}

static void thread(void *to, struct process *p, struct thread *t)
{
	tracks_thread(to, p, t);
}

static void point(void *to, struct process *p, enum curve_kind c, u64 ticks, i64 bytes)
{
	tracks_point(to, p, c, ticks, bytes);
}

/* The percentage is made here again: it must cover the time since the sample that was written before. */
static void sample(void *to, struct process *p, u64 ticks, const struct rec_sample *now, double cpu_percent)
{
	(void)cpu_percent;
	tracks_sample(to, p, ticks, now);
}

static void device_point(void *to, struct process *p, struct device *d, int heap, u64 ticks, i64 bytes)
{
	devices_point(to, p, d, heap, ticks, bytes);
}

static void counter(void *to, struct process *p, const struct counter_point *c)
{
	devices_counter(to, p, c);
}

static void run(void *to, struct process *p, struct thread *t, const struct work_run *r)
{
	works_run(to, p, t, r);
}

static void call(void *to, struct process *p, struct thread *t, const struct call *c)
{
	works_call(to, p, t, c);
}

static void work(void *to, struct process *p, const struct work *done)
{
	works_work(to, p, done);
}

static void memory(void *to, struct process *p, struct device_memory *m)
{
	memory_born(to, p, m);
}

static void memory_end(void *to, struct process *p, struct device_memory *m)
{
	memory_died(to, p, m);
}

struct listener perfetto_listener(struct perfetto *w)
{
	return (struct listener){
		.to = w, .begin = begin, .process = process, .thread = thread, .point = point, .sample = sample,
		.device_point = device_point, .call = call, .run = run, .work = work, .counter = counter, .memory = memory,
		.memory_end = memory_end,
	};
}

void perfetto_flush(struct perfetto *w)
{
	out_flush(w);
}

void perfetto_finish(struct perfetto *w, struct session *s, struct symbols *y)
{
	if (!w->session)
		begin(w, s);
	for (u32 i = 0; i < s->processes; i++)
		tracks_end(w, s->process[i]);
	instants_write(w, s);
	spans_write(w, s, y);
	devices_finish(w, y);
	heap_dumps(w, s, y);
	s->losses.symbols = symbols_unnamed(y);
	head_end(w, y);
	out_flush(w);
}

int perfetto_close(struct perfetto *w)
{
	int error;

	out_flush(w);
	error = w->error;
	if (close(w->fd) < 0 && !error && errno != EINTR)
		error = -errno;
	enc_free(&w->out);
	devices_free(w);
	free(w->tracks);
	free(w);
	return error;
}
