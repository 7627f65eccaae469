/*
 * summary_json_devices.c - devices, kernels, transfers, calls and waits for programs.
 *
 * Lists are always there, so that whoever reads them need not ask; peak_with_devices only where there is a device.
 */
#include "summary.h"
#include "util/json.h"

static const char *const work_kind[WORK_KINDS] = {
	[WORK_KERNEL] = "kernel", [WORK_READ] = "read", [WORK_WRITE] = "write", [WORK_COPY] = "copy", [WORK_FILL] = "fill",
	[WORK_MAP] = "map", [WORK_UNMAP] = "unmap", [WORK_MARK] = "mark", [WORK_GROUP] = "group", [WORK_OTHER] = "other",
};

static const char *const call_kind[] = {
	[CALL_OTHER] = "other", [CALL_ENQUEUE] = "enqueue", [CALL_SUBMIT] = "submit", [CALL_WAIT] = "wait", [CALL_BUILD] = "build",
	[CALL_MEMORY] = "memory", [CALL_SPAN] = "span", [CALL_COPY] = "copy", [CALL_MARK] = "mark",
};

static void each_device(struct json *j, const struct session *s, struct symbols *y,
			void (*one)(struct json *j, const struct session *s, struct symbols *y, const struct device *d))
{
	for (u32 i = 0; i < s->processes; i++)
		for (u32 k = 0; k < s->process[i]->devices; k++)
			one(j, s, y, s->process[i]->device[k]);
}

/* ---- devices ----------------------------------------------------------------------- */

static void clock(struct json *j, const struct device *d)
{
	static const char *const kind[] = { "none", "calibrated", "bounded", "host" };
	static const char *const match[] = {
		[MATCH_NONE] = NULL, [MATCH_LINE] = "line", [MATCH_MONOTONIC] = "monotonic", [MATCH_BOOTTIME] = "boottime",
		[MATCH_REALTIME] = "realtime",
	};

	json_open(j, "clock", '{');
	json_string(j, "kind", kind[d->clock]);
	json_string(j, "match", match[d->match.match]);
	json_count(j, "residual_ns", d->match.residual_ns);
	json_real(j, "rate_ppm", d->match.rate_ppm);
	json_count(j, "samples", d->match.samples);
	json_count(j, "moved", d->match.moved);
	json_count(j, "max_moved_ns", d->match.max_moved_ns);
	json_close(j, '}');
}

static void heaps(struct json *j, const struct session *s, const struct device *d)
{
	json_open(j, "heaps", '[');
	for (u32 i = 0; i < d->heaps; i++) {
		if (!d->heap[i].used)
			continue;
		json_open(j, NULL, '{');
		json_count(j, "heap", i);
		json_number(j, "peak_bytes", d->heap[i].peak);
		json_count(j, "peak_time_ns", session_ns(s, d->heap[i].peak_ticks));
		json_number(j, "live_at_exit_bytes", d->heap[i].now);
		json_close(j, '}');
	}
	json_close(j, ']');
}

/* What its large blocks were made of. */
static void blocks(struct json *j, const struct device *d)
{
	u64 left_out = 0;

	for (u32 i = 0; i < d->heaps; i++)
		left_out += d->heap[i].left_out_at == d->heap[i].peak_ticks ? d->heap[i].blocks_left_out : 0;
	json_open(j, "blocks", '[');
	for (u32 i = 0; i < d->blocks; i++) {
		const struct used_block *b = &d->block[i];

		json_open(j, NULL, '{');
		json_count(j, "bytes", b->bytes);
		json_string(j, "label", b->label);
		json_count(j, "used_bytes", b->used.bytes);
		json_count(j, "used_ranges", b->used.count);
		json_count(j, "used_left_out", b->used.more);
		json_open(j, "largest", '[');
		for (u32 k = 0; k < b->ranges; k++) {
			json_open(j, NULL, '{');
			json_count(j, "offset", b->range[k].offset);
			json_count(j, "bytes", b->range[k].length);
			json_string(j, "by", b->range[k].name);
			json_close(j, '}');
		}
		json_close(j, ']');
		json_close(j, '}');
	}
	json_close(j, ']');
	json_count(j, "blocks_left_out", left_out);
}

static void memory(struct json *j, const struct session *s, struct symbols *y, const struct device *d)
{
	const struct process *p = s->process[d->process];
	const struct pool *pool = d->heaps ? &p->pools.at[d->pool] : NULL;

	json_number(j, "peak_bytes", pool ? pool->peak : 0);
	json_count(j, "peak_time_ns", pool ? session_ns(s, pool->peak_ticks) : 0);
	json_count(j, "allocs", d->allocs);
	json_count(j, "frees", d->frees);
	json_count(j, "objects", d->objects);
	json_number(j, "live_at_exit_bytes", pool ? pool->now : 0);
	json_number(j, "live_at_exit_blocks", pool ? pool->blocks : 0);
	heaps(j, s, d);
	blocks(j, d);
	json_open(j, "peak", '{');
	if (p->device_peak)
		summary_json_holders(j, s, y, &p->device_peak[d->index]);
	json_close(j, '}');
}

static void device(struct json *j, const struct session *s, struct symbols *y, const struct device *d)
{
	json_open(j, NULL, '{');
	json_string(j, "name", d->name);
	json_string(j, "api", d->api);
	json_string(j, "driver", d->driver);
	json_string(j, "title", d->title);
	json_string(j, "label", d->label);
	json_count(j, "pid", s->process[d->process]->pid);
	json_string(j, "type", d->flags & DEVICE_CPU ? "cpu" : d->flags & DEVICE_GPU ? "gpu" : device_is_library(d) ? "library" : "other");
	json_bool(j, "host_memory", !device_counts(d));
	memory(j, s, y, d);
	json_count(j, "queues", d->queues);
	json_count(j, "busy_ns", d->busy_ns);
	json_count(j, "kernels", summary_kernels(d));
	json_count(j, "works_timed", d->done[DONE_TIMED]);
	json_count(j, "works_observed", d->done[DONE_OBSERVED]);
	json_count(j, "works_untimed", d->done[DONE_UNTIMED]);
	json_count(j, "works_failed", d->done[DONE_FAILED]);
	json_count(j, "works_unfinished", d->done[DONE_NEVER]);
	clock(j, d);
	json_close(j, '}');
}

/* ---- work -------------------------------------------------------------------------- */

static void work_sum(struct json *j, const struct session *s, const struct device *d, const char *key, const char *name,
		     const struct work_sum *w)
{
	json_open(j, NULL, '{');
	json_string(j, key, name);
	json_string(j, "device", d->title);
	json_count(j, "pid", s->process[d->process]->pid);
	json_count(j, "calls", w->calls);
	json_count(j, "failed", w->failed);
	json_count(j, "unfinished", w->unfinished);
	json_count(j, "timed", w->timed);
	json_count(j, "bytes", w->bytes);
	json_count(j, "unsized", w->unsized);
	json_count(j, "total_ns", w->total_ns);
	json_count(j, "avg_ns", w->timed ? w->total_ns / w->timed : 0);
	json_count(j, "min_ns", w->min_ns);
	json_count(j, "max_ns", w->max_ns);
	json_count(j, "observed", w->observed);
	json_count(j, "shared", w->shared);
	json_real(j, "flops", w->flops);
	json_real(j, "gflops", summary_per_ns(w->paced_flops));
	if (w->tiles) {
		json_count(j, "tiles", w->tiles);
		json_count(j, "tile_sum_ns", w->tile_sum_ns);
	}
	json_close(j, '}');
}

static void kernels(struct json *j, const struct session *s, struct symbols *y, const struct device *d)
{
	(void)y;
	for (u32 i = 0; i < d->kernels; i++)
		work_sum(j, s, d, "name", d->kernel[i].name, &d->kernel[i]);
}

static void transfers(struct json *j, const struct session *s, struct symbols *y, const struct device *d)
{
	(void)y;
	for (u32 i = 0; i < WORK_KINDS; i++)
		if (i != WORK_KERNEL && d->kind[i].calls + d->kind[i].unfinished)
			work_sum(j, s, d, "kind", work_kind[i], &d->kind[i]);
}

/* ---- calls ------------------------------------------------------------------------- */

static void call(struct json *j, const struct call_sum *c)
{
	json_open(j, NULL, '{');
	json_string(j, "name", c->name);
	json_string(j, "kind", call_kind[c->kind]);
	json_count(j, "calls", c->calls);
	json_count(j, "errors", c->errors);
	json_count(j, "total_ns", c->total_ns);
	json_count(j, "max_ns", c->max_ns);
	json_close(j, '}');
}

static void calls(struct json *j, const struct session *s, bool waits_only)
{
	for (u32 i = 0; i < s->calls; i++)
		if (!waits_only || s->call[i].kind == CALL_WAIT)
			call(j, &s->call[i]);
}

static void waits(struct json *j, const struct session *s)
{
	struct summary_waits all = summary_waits(s);

	json_open(j, "waits", '{');
	json_count(j, "calls", all.calls);
	json_count(j, "total_ns", all.total_ns);
	json_open(j, "by_name", '[');
	calls(j, s, true);
	json_close(j, ']');
	json_close(j, '}');
}

/* ---- all --------------------------------------------------------------------------- */

static void peak_with_devices(struct json *j, const struct session *s, struct symbols *y)
{
	if (!summary_has_devices(s))
		return;
	json_open(j, "peak_with_devices", '{');
	json_number(j, "bytes", s->with_devices.peak);
	json_count(j, "time_ns", session_ns(s, s->with_devices.peak_ticks));
	json_number(j, "host_bytes", s->with_devices.peak - s->devices_then);
	json_number(j, "device_bytes", s->devices_then);
	summary_json_holders(j, s, y, &s->with_devices.at_peak);
	json_close(j, '}');
}

void summary_json_devices(struct json *j, const struct session *s, struct symbols *y)
{
	static const struct {
		const char *key;
		void (*one)(struct json *j, const struct session *s, struct symbols *y, const struct device *d);
	} list[] = { { "devices", device }, { "kernels", kernels }, { "transfers", transfers } };

	peak_with_devices(j, s, y);
	for (u32 i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
		json_open(j, list[i].key, '[');
		each_device(j, s, y, list[i].one);
		json_close(j, ']');
	}
	waits(j, s);
	json_open(j, "api_calls", '[');
	calls(j, s, false);
	json_close(j, ']');
}
