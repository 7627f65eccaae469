/*
 * perfetto_head.c - what is said of the recording as a whole: clocks, machine, identity, attributes.
 *
 * The clocks must be the first packet of the file: whatever came before them would be read on another clock.
 * Clock 4 is there because heap dumps are stamped with it.
 */
#include "perfetto.h"
#include "util/buf.h"

#include <stdio.h>

enum { CLOCK_REAL = 1, CLOCK_MONO = 3, CLOCK_MONO_COARSE = 4, CLOCK_BOOT = 6 };

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void clocks(struct perfetto *w)
{
	const struct rec_clock *c = &w->session->first_clock;
	const struct { u32 id; u64 ns; } now[] = {
		{ CLOCK_MONO, c->monotonic }, { CLOCK_MONO_COARSE, c->monotonic },
		{ CLOCK_BOOT, c->boottime }, { CLOCK_REAL, c->realtime },
	};
	PerfettoMin__ClockSnapshot__Clock clock[COUNT(now)], *list[COUNT(now)];
	PerfettoMin__ClockSnapshot snapshot = PERFETTO_MIN__CLOCK_SNAPSHOT__INIT;
	PerfettoMin__TracePacket packet = PERFETTO_MIN__TRACE_PACKET__INIT;

	for (size_t i = 0; i < COUNT(now); i++) {
		perfetto_min__clock_snapshot__clock__init(&clock[i]);
		clock[i].has_clock_id = clock[i].has_timestamp = 1;
		clock[i].clock_id = now[i].id;
		clock[i].timestamp = now[i].ns;
		list[i] = &clock[i];
	}
	snapshot.clocks = list;
	snapshot.n_clocks = COUNT(now);
	snapshot.has_primary_trace_clock = 1;
	snapshot.primary_trace_clock = CLOCK_MONO;
	packet.clock_snapshot = &snapshot;
	packet_rare(w, &packet);
}

static void machine(struct perfetto *w)
{
	const struct rec_session *head = &w->session->head;
	PerfettoMin__SystemInfo__Utsname uts = PERFETTO_MIN__SYSTEM_INFO__UTSNAME__INIT;
	PerfettoMin__SystemInfo info = PERFETTO_MIN__SYSTEM_INFO__INIT;
	PerfettoMin__TracePacket packet = PERFETTO_MIN__TRACE_PACKET__INIT;

	w->uts_written = w->session->uts;
	if (w->session->uts) {
		uts.sysname = w->session->uts;
		uts.release = uts.sysname + strlen(uts.sysname) + 1;
		uts.version = uts.release + strlen(uts.release) + 1;
		uts.machine = uts.version + strlen(uts.version) + 1;
		info.utsname = &uts;
	}
	info.has_page_size = info.has_num_cpus = info.has_system_ram_bytes = 1;
	info.page_size = head->page_size;
	info.num_cpus = head->cpus;
	info.system_ram_bytes = head->ram;
	packet.system_info = &info;
	packet_rare(w, &packet);
}

static void identity(struct perfetto *w)
{
	PerfettoMin__TraceUuid uuid = PERFETTO_MIN__TRACE_UUID__INIT;
	PerfettoMin__TracePacket packet = PERFETTO_MIN__TRACE_PACKET__INIT;

	uuid.has_msb = uuid.has_lsb = 1;
	uuid.msb = w->session->head.id0;
	uuid.lsb = w->session->head.id1;
	packet.trace_uuid = &uuid;
	packet_rare(w, &packet);
}

/* ---- attributes: metadata rows "trace_attribute.KEY" ------------------------------- */

static void attribute(struct perfetto *w, const char *key, const char *text, i64 number)
{
	PerfettoMin__TraceAttributes__Attribute a = PERFETTO_MIN__TRACE_ATTRIBUTES__ATTRIBUTE__INIT, *list[] = { &a };
	PerfettoMin__TraceAttributes attributes = PERFETTO_MIN__TRACE_ATTRIBUTES__INIT;
	PerfettoMin__TracePacket packet = PERFETTO_MIN__TRACE_PACKET__INIT;
	char *key_copy = utf8_copy(key), *text_copy = text ? utf8_copy(text) : NULL;

	a.key = key_copy;
	a.string_value = text_copy;
	a.has_long_value = !text;
	a.long_value = number;
	attributes.attribute = list;
	attributes.n_attribute = 1;
	packet.trace_attributes = &attributes;
	if (key_copy)
		packet_rare(w, &packet);
	free(key_copy);
	free(text_copy);
}

/* Arguments, each ended by a NUL, as one line that a shell would take apart again. */
static char *command_line(const char *command, u32 bytes)
{
	struct buf line = { 0 };

	for (u32 at = 0; at < bytes;) {
		size_t length = strnlen(command + at, bytes - at);

		if (at)
			buf_char(&line, ' ');
		buf_word(&line, command + at, length);
		at += length + 1;
	}
	return line.at;
}

static void numbered(struct perfetto *w, const char *key, const struct text_list *list)
{
	char name[64];

	for (u32 i = 0; i < list->count; i++) {
		snprintf(name, sizeof(name), "mlprof.%s.%u", key, i + 1);
		attribute(w, name, list->at[i], 0);
	}
}

static void options(struct perfetto *w)
{
	char name[128];

	for (u32 i = 0; i < w->session->options.count; i++) {
		const char *option = w->session->options.at[i], *value = strchrnul(option, '=');

		snprintf(name, sizeof(name), "mlprof.option.%.*s", (int)(value - option), option);
		attribute(w, name, *value ? value + 1 : "", 0);
	}
}

static void pools(struct perfetto *w)
{
	char name[512];

	for (u32 i = 0; i < w->session->pools.count; i++) {
		const struct pool *pool = &w->session->pools.at[i];

		snprintf(name, sizeof(name), "mlprof.pool.%s.peak_bytes", pool->name);
		attribute(w, name, NULL, pool->peak);
	}
}

static void numbers(struct perfetto *w, const struct symbols *y)
{
	const struct session *s = w->session;
	const struct losses *l = &s->losses;
	const struct { const char *key; u64 value; } row[] = {
		{ "mlprof.duration_ns", ns_of(w, s->end) - ns_of(w, s->start) },
		{ "mlprof.peak_bytes", s->total.peak },
		{ "mlprof.peak_time_ns", ns_of(w, s->total.peak_ticks) },
		{ "mlprof.peak_with_devices_bytes", s->with_devices.peak },
		{ "mlprof.peak_with_devices_time_ns", ns_of(w, s->with_devices.peak_ticks) },
		{ "mlprof.allocs", s->allocs },
		{ "mlprof.frees", s->frees },
		{ "mlprof.allocated_bytes", s->allocated_bytes },
		{ "mlprof.temporary_allocs", s->temporary },
		{ "mlprof.live_at_exit_bytes", s->live_bytes },
		{ "mlprof.live_at_exit_blocks", s->live_blocks },
		{ "mlprof.processes", s->processes },
		{ "mlprof.events", s->events },
		{ "mlprof.large_bytes", s->large },
		{ "mlprof.losses.records", l->records },
		{ "mlprof.losses.stacks", l->stacks },
		{ "mlprof.losses.symbols", l->symbols },
		{ "mlprof.losses.lines", symbols_unlined(y) },
		{ "mlprof.losses.late", l->late },
		{ "mlprof.losses.bad_chunks", l->bad_chunks },
		{ "mlprof.losses.unknown_frees", l->unknown_frees },
		{ "mlprof.losses.unseen_frees", l->unseen_frees },
		{ "mlprof.losses.spans", l->spans },
		{ "mlprof.losses.texts", l->texts },
		{ "mlprof.losses.works_unfinished", l->unfinished },
		{ "mlprof.losses.works_untimed", l->untimed },
		{ "mlprof.losses.works_unsized", l->unsized },
		{ "mlprof.losses.works_failed", l->failed },
		{ "mlprof.losses.works_not_drawn", l->works },
		{ "mlprof.losses.unknown_ids", l->unknown_ids },
		{ "mlprof.losses.probe_values", l->probe_values },
		{ "mlprof.losses.probe_calls", l->probe_calls },
		{ "mlprof.losses.probe_frees", l->probe_frees },
		{ "mlprof.probe_calls_too_short", s->short_probes },
	};

	for (size_t i = 0; i < COUNT(row); i++)
		attribute(w, row[i].key, NULL, row[i].value);
}

/* Devices of all processes, numbered from 1: whoever has the trace needs no summary. */
static void device(struct perfetto *w, const struct device *d, u32 number)
{
	static const char *const clock[] = { "none", "calibrated", "bounded", "host" };
	const struct process *p = w->session->process[d->process];
	const struct { const char *key, *text; i64 value; } row[] = {
		{ "title", d->title, 0 }, { "driver", d->driver, 0 }, { "pid", NULL, p->pid }, { "flags", NULL, d->flags },
		{ "peak_bytes", NULL, d->heaps && d->pool < p->pools.count ? p->pools.at[d->pool].peak : 0 },
		{ "busy_ns", NULL, (i64)d->busy_ns }, { "clock", clock[d->clock], 0 }, { "residual_ns", NULL, (i64)d->match.residual_ns },
	};
	char name[64];

	for (size_t i = 0; i < COUNT(row); i++) {
		snprintf(name, sizeof(name), "mlprof.device.%u.%s", number, row[i].key);
		attribute(w, name, row[i].text, row[i].value);
	}
}

static void devices(struct perfetto *w)
{
	const struct session *s = w->session;
	u32 number = 0;

	for (u32 i = 0; i < s->processes; i++)
		for (u32 k = 0; k < s->process[i]->devices; k++)
			device(w, s->process[i]->device[k], ++number);
}

/* Libraries that were at work and could not be seen. */
static void unseen(struct perfetto *w)
{
	const struct session *s = w->session;
	char name[64];

	for (u32 i = 0; i < s->unseens; i++) {
		snprintf(name, sizeof(name), "mlprof.unseen.%u.library", i + 1);
		attribute(w, name, s->unseen[i].library, 0);
		snprintf(name, sizeof(name), "mlprof.unseen.%u.path", i + 1);
		attribute(w, name, s->unseen[i].path, 0);
	}
}

/* Needs no session: the file of a collector that was killed in its first moments is a trace, too. */
void head_open(struct perfetto *w)
{
	attribute(w, "mlprof.version", MLPROF_VERSION, 0);
}

void head_begin(struct perfetto *w)
{
	char *line;

	clocks(w);
	machine(w);
	identity(w);
	line = command_line(w->session->command, w->session->command_bytes);
	if (line)
		attribute(w, "mlprof.command", line, 0);
	free(line);
}

void head_end(struct perfetto *w, const struct symbols *y)
{
	if (!w->uts_written && w->session->uts)
		machine(w);
	options(w);
	numbers(w, y);
	pools(w);
	devices(w);
	unseen(w);
	numbered(w, "notice", &w->session->notices);
}
