/*
 * summary_json.c - the summary for programs. The keys are an interface: add, never rename.
 *
 * Times ending in _ns are CLOCK_MONOTONIC, as in the trace; start_ns is when the recording began.
 */
#include "driver.h"
#include "summary.h"
#include "util/json.h"

#include <string.h>

enum { STACKS_MAX = 64, FRAMES_MAX = 512 };

/* ---- parts ------------------------------------------------------------------------- */

static void arguments(struct json *j, const char *key, const char *text, u32 bytes)
{
	json_open(j, key, '[');
	for (u32 at = 0; text && at < bytes;) {
		u32 length = strnlen(text + at, bytes - at);

		json_text(j, NULL, text + at, length);
		at += length + 1;
	}
	json_close(j, ']');
}

static void texts(struct json *j, const char *key, const struct text_list *list)
{
	json_open(j, key, '[');
	for (u32 i = 0; i < list->count; i++)
		json_string(j, NULL, list->at[i]);
	json_close(j, ']');
}

static void end_of(struct json *j, const struct process *p)
{
	json_open(j, "exit", '{');
	if (p && p->died == DIED_EXITED)
		json_number(j, "status", p->code);
	else if (p && p->died == DIED_SIGNAL)
		json_number(j, "signal", p->code);
	else if (p && p->died == DIED_EXEC)
		json_bool(j, "exec", true);
	else
		json_string(j, "reason", p && p->died == DIED_RUNNING ? "running" : "unknown");
	json_close(j, '}');
}

static void frame(struct json *j, const struct frames *all, u32 i)
{
	json_open(j, NULL, '{');
	json_string(j, "function", all->at[i].function);
	json_string(j, "file", all->at[i].file);
	if (all->at[i].line)
		json_count(j, "line", all->at[i].line);
	else
		json_null(j, "line");
	json_string(j, "module", all->module ? all->module->path : NULL);
	json_bool(j, "inlined", i + 1 < all->count);
	json_count(j, "address", all->rel_pc);
	json_close(j, '}');
}

static void stack(struct json *j, const struct process *p, struct symbols *y, u32 node)
{
	json_open(j, "frames", '[');
	for (u32 depth = 0; node && node < p->nodes && depth < FRAMES_MAX; depth++) {
		struct frames all = symbols_frames(y, p, node);

		for (u32 i = 0; i < all.count; i++)
			frame(j, &all, i);
		node = p->node[node].parent;
	}
	json_close(j, ']');
}

/* Memory that a device's driver took for itself, or for mlprof. */
static void driver(struct json *j, struct symbols *y, const struct process *p, u32 node)
{
	struct driver_call call = driver_call(y, p, node);
	const struct device *device = call.name ? driver_device(p) : NULL;

	if (!call.name)
		return;
	json_string(j, "driver_call", *call.name ? call.name : NULL);
	json_string(j, "driver_of", device ? device->title : NULL);
	json_bool(j, "for_mlprof", call.ours);
}

static void holder(struct json *j, const struct session *s, struct symbols *y, const struct holder *h)
{
	const struct process *p = s->process[h->process];
	const struct module *module = NULL;

	json_open(j, NULL, '{');
	json_number(j, "bytes", h->bytes);
	json_number(j, "blocks", h->blocks);
	json_string(j, "pool", h->pool < p->pools.count ? p->pools.at[h->pool].name : NULL);
	json_count(j, "pid", p->pid);
	json_string(j, "owner", h->node ? symbols_owner(y, p, h->node, &module)->function : NULL);
	driver(j, y, p, h->node);
	stack(j, p, y, h->node);
	json_close(j, '}');
}

static void rest(struct json *j, const struct holder_list *list, u32 from)
{
	i64 bytes = 0, blocks = 0;

	for (u32 i = from; i < list->count; i++) {
		bytes += list->at[i].bytes;
		blocks += list->at[i].blocks;
	}
	json_open(j, "by_stack_rest", '{');
	json_count(j, "stacks", list->count > from ? list->count - from : 0);
	json_number(j, "bytes", bytes);
	json_number(j, "blocks", blocks);
	json_close(j, '}');
}

void summary_json_holders(struct json *j, const struct session *s, struct symbols *y, const struct holder_list *list)
{
	u32 count = list->count < STACKS_MAX ? list->count : STACKS_MAX;

	json_open(j, "by_stack", '[');
	for (u32 i = 0; i < count; i++)
		holder(j, s, y, &list->at[i]);
	json_close(j, ']');
	rest(j, list, count);
}

/* y NULL: without the stacks. */
static void peak(struct json *j, const struct session *s, struct symbols *y, const struct scope *scope)
{
	struct summary_parts parts = summary_parts(scope);

	json_open(j, "peak", '{');
	json_number(j, "bytes", scope->peak);
	json_count(j, "time_ns", session_ns(s, scope->peak_ticks));
	json_number(j, "malloc_bytes", parts.malloc);
	json_number(j, "mmap_bytes", parts.mmap);
	if (y)
		summary_json_holders(j, s, y, &scope->at_peak);
	json_close(j, '}');
}

static void pools(struct json *j, const struct session *s, const struct pool_list *list)
{
	static const char *const kind[] = { "anonymous", "file", "shared", "device", "device, in the host's heap", "library" };

	json_open(j, "pools", '[');
	for (u32 i = 0; i < list->count; i++) {
		const struct pool *p = &list->at[i];

		json_open(j, NULL, '{');
		json_string(j, "name", p->name);
		json_string(j, "kind", p->kind >= 0 && p->kind <= POOL_LIBRARY ? kind[p->kind] : NULL);
		json_number(j, "peak_bytes", p->peak);
		json_count(j, "peak_time_ns", session_ns(s, p->peak_ticks));
		json_count(j, "allocs", p->allocs);
		json_count(j, "frees", p->frees);
		json_count(j, "allocated_bytes", p->allocated_bytes);
		json_number(j, "live_at_exit_bytes", p->now);
		json_number(j, "live_at_exit_blocks", p->blocks);
		json_close(j, '}');
	}
	json_close(j, ']');
}

static void process(struct json *j, const struct session *s, const struct process *p)
{
	json_open(j, NULL, '{');
	json_count(j, "pid", p->pid);
	json_count(j, "ppid", p->ppid);
	json_string(j, "name", p->name);
	json_string(j, "exe", p->exe);
	arguments(j, "command", p->command, p->command_bytes);
	end_of(j, p);
	json_count(j, "start_ns", session_ns(s, p->born));
	json_count(j, "duration_ns", summary_duration_ns(s, p->born, p->ended));
	json_bool(j, "forked", p->forked);
	json_bool(j, "recorded", !p->silent);
	json_string(j, "not_followed", p->not_followed);
	peak(j, s, NULL, &p->total);
	pools(j, s, &p->pools);
	json_count(j, "threads", p->threads);
	json_count(j, "allocs", p->allocs);
	json_count(j, "frees", p->frees);
	json_count(j, "inherited_frees", p->inherited_frees);
	json_count(j, "peak_rss_bytes", p->peak_rss);
	json_count(j, "cpu_ns", p->cpu_ns);
	json_count(j, "minor_faults", p->minor_faults);
	json_count(j, "major_faults", p->major_faults);
	json_close(j, '}');
}

static void totals(struct json *j, const struct session *s)
{
	json_open(j, "totals", '{');
	json_count(j, "allocs", s->allocs);
	json_count(j, "frees", s->frees);
	json_count(j, "allocated_bytes", s->allocated_bytes);
	json_count(j, "live_at_exit_bytes", s->live_bytes);
	json_count(j, "live_at_exit_blocks", s->live_blocks);
	json_count(j, "temporary_allocs", s->temporary);
	json_count(j, "peak_rss_bytes", summary_peak_rss(s));
	json_close(j, '}');
}

static void losses(struct json *j, const struct losses *l)
{
	json_open(j, "losses", '{');
	json_count(j, "records", l->records);
	json_count(j, "stacks", l->stacks);
	json_count(j, "symbols", l->symbols);
	json_count(j, "late", l->late);
	json_count(j, "bad_chunks", l->bad_chunks);
	json_count(j, "unknown_frees", l->unknown_frees);
	json_count(j, "unseen_frees", l->unseen_frees);
	json_count(j, "spans", l->spans);
	json_count(j, "texts", l->texts);
	json_count(j, "works_unfinished", l->unfinished);
	json_count(j, "works_untimed", l->untimed);
	json_count(j, "works_unsized", l->unsized);
	json_count(j, "works_failed", l->failed);
	json_count(j, "works_not_drawn", l->works);
	json_count(j, "unknown_ids", l->unknown_ids);
	json_count(j, "probe_values", l->probe_values);
	json_count(j, "probe_calls", l->probe_calls);
	json_count(j, "probe_frees", l->probe_frees);
	json_close(j, '}');
}

static void overhead(struct json *j, const struct session *s)
{
	json_open(j, "overhead", '{');
	json_count(j, "events", s->events);
	json_real(j, "events_per_s", s->events / summary_seconds(s));
	json_count(j, "hook_ns_estimate", summary_hook_ns(s));
	json_count(j, "waited_ns", summary_waited_ns(s));
	json_count(j, "bind_ns", s->bind_ns);
	json_count(j, "probe_sites", s->probe_sites);
	json_count(j, "stack_misses", s->stack_misses);
	json_count(j, "hard_stacks", s->hard_stacks);
	json_close(j, '}');
}

static void whole(struct json *j, const struct session *s, struct symbols *y)
{
	json_open(j, NULL, '{');
	json_string(j, "mlprof", MLPROF_VERSION);
	arguments(j, "command", s->command, s->command_bytes);
	end_of(j, summary_last_image(s));
	json_count(j, "start_ns", session_ns(s, s->start));
	json_count(j, "duration_ns", summary_duration_ns(s, s->start, s->end));
	totals(j, s);
	peak(j, s, y, &s->total);
	pools(j, s, &s->pools);
	summary_json_devices(j, s, y);
	summary_json_probes(j, s);
	json_open(j, "processes", '[');
	for (u32 i = 0; i < s->processes; i++)
		process(j, s, s->process[i]);
	json_close(j, ']');
	losses(j, &s->losses);
	overhead(j, s);
	texts(j, "options", &s->options);
	texts(j, "notices", &s->notices);
	json_close(j, '}');
}

int summary_json(int fd, const struct session *s, struct symbols *y)
{
	struct json j = { 0 };

	whole(&j, s, y);
	buf_char(&j.out, '\n');
	int error = buf_write(&j.out, fd);

	buf_release(&j.out);
	return error;
}
