/* summary.c - what both summaries have to work out. */
#include "summary.h"

#include <stdio.h>
#include <string.h>

/* Measured on 2.5 to 4 GHz x86-64 and rounded up: half a malloc+free pair with its stack in the cache, a stack
 * walked by the table of unwind rules, and what it takes on top to get through code that has none. */
enum { NS_RECORD = 30, NS_STACK_MISS = 700, NS_HARD_STACK = 300 };

const struct process *summary_last_image(const struct session *s)
{
	const struct process *last = s->processes ? s->process[0] : NULL;

	for (u32 i = 1; i < s->processes && last->died == DIED_EXEC; i++)
		if (s->process[i]->pid == last->pid)
			last = s->process[i];
	return last;
}

u64 summary_duration_ns(const struct session *s, u64 from, u64 to)
{
	u64 start = session_ns(s, from), end = session_ns(s, to);

	return end > start ? end - start : 0;
}

double summary_seconds(const struct session *s)
{
	u64 ns = summary_duration_ns(s, s->start, s->end);

	return (ns ? ns : 1) / 1e9;
}

struct summary_parts summary_parts(const struct scope *scope)
{
	struct summary_parts parts = { 0, 0 };

	for (u32 i = 0; i < scope->at_peak.count; i++) {
		const struct holder *h = &scope->at_peak.at[i];

		if (h->pool == POOL_MALLOC)
			parts.malloc += h->bytes;
		else if (h->pool == POOL_MMAP)
			parts.mmap += h->bytes;
	}
	return parts;
}

u64 summary_waited_ns(const struct session *s)
{
	return summary_duration_ns(s, s->start, s->start + s->waited_ticks);
}

u64 summary_hook_ns(const struct session *s)
{
	return s->events * NS_RECORD + s->stack_misses * NS_STACK_MISS + s->hard_stacks * NS_HARD_STACK +
		summary_waited_ns(s) + s->bind_ns;
}

u64 summary_peak_rss(const struct session *s)
{
	u64 peak = 0;

	for (u32 i = 0; i < s->processes; i++)
		peak = s->process[i]->peak_rss > peak ? s->process[i]->peak_rss : peak;
	return peak;
}

const char *summary_last_part(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash && slash[1] ? slash + 1 : path ? path : "?";
}

void summary_end(const struct process *p, char *text, size_t size)
{
	const char *name = p->died == DIED_SIGNAL ? sigabbrev_np(p->code) : NULL;

	if (p->not_followed)
		snprintf(text, size, "became %s, not followed", summary_last_part(p->not_followed));
	else if (p->died == DIED_EXITED)
		snprintf(text, size, "exit status %d", p->code);
	else if (p->died == DIED_SIGNAL)
		snprintf(text, size, "killed by signal %d%s%s", p->code, name ? ", SIG" : "", name ? name : "");
	else if (p->died == DIED_EXEC)
		snprintf(text, size, "became another program (exec)");
	else
		snprintf(text, size, "%s", p->died == DIED_RUNNING ? "still running" : "ended, nobody saw how");
}

/* ---- devices ----------------------------------------------------------------------- */

bool summary_has_devices(const struct session *s)
{
	for (u32 i = 0; i < s->processes; i++)
		for (u32 k = 0; k < s->process[i]->devices; k++)
			if (!device_is_library(s->process[i]->device[k]) || device_counts(s->process[i]->device[k]))
				return true;
	return false;
}

u64 summary_kernels(const struct device *d)
{
	return d->kind[WORK_KERNEL].calls - d->kind[WORK_KERNEL].failed;
}

double summary_per_ns(struct paced p)
{
	return p.ns ? p.amount / (double)p.ns : 0;
}

struct summary_waits summary_waits(const struct session *s)
{
	struct summary_waits all = { 0, 0 };

	for (u32 i = 0; i < s->calls; i++) {
		if (s->call[i].kind != CALL_WAIT)
			continue;
		all.calls += s->call[i].calls;
		all.total_ns += s->call[i].total_ns;
	}
	return all;
}
