/*
 * summary_text.c - the summary for people: how much, when, whose, on about one screen.
 *
 *   command, duration, exit
 *   Peak       bytes, when, which part is malloc
 *   Held by    a table of owners; under each the way to its largest stack: summary_text_owners.c
 *   Pools      malloc, mmap, file mappings, heaps of libraries
 *   Devices    if there are any: summary_text_devices.c
 *   On device  whose memory that was, where it is the host's: summary_text_owners.c
 *   Probes     if there are any: summary_text_probes.c
 *   Tokens     if a call said how many it takes
 *   Processes  if there is more than one
 *   Totals     allocations, live at exit
 *   Missing    only what is not zero, with what to do
 */
#include "summary_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	POOLS_MAX = 6,
	PROCESSES_MAX = 12,
	NOTICES_MAX = 12,
	COMMAND_MAX = 200,
};

void text_tone(struct text *t, enum tone which)
{
	static const char *const code[] = { "\033[0m", "\033[1m", "\033[2m", "\033[31m" };

	if (t->colour)
		buf_text(&t->b, code[which]);
}

/* Bytes of a program: no control character may reach the terminal. */
static void safe_bytes(struct buf *b, const char *text, size_t length)
{
	for (size_t i = 0; i < length; i++)
		buf_char(b, (unsigned char)text[i] < 0x20 || text[i] == 0x7f ? '?' : text[i]);
}

void text_safe(struct buf *b, const char *text)
{
	safe_bytes(b, text, strlen(text));
}

void text_toned(struct text *t, enum tone which, const char *text)
{
	text_tone(t, which);
	text_safe(&t->b, text);
	text_tone(t, PLAIN);
}

/* "Peak       ": the name of a section fills the first column. */
void text_heading(struct text *t, const char *name)
{
	text_toned(t, BOLD, name);
	buf_repeat(&t->b, ' ', 11 - (int)strlen(name));
}

/* The name of a table, with the heading of its first column above the end of that column. */
void text_table(struct text *t, const char *name, const char *first, const char *others)
{
	text_toned(t, BOLD, name);
	buf_repeat(&t->b, ' ', FIRST_COLUMN - (int)strlen(name) - (int)strlen(first));
	buf_print(&t->b, "%s%s\n", first, others);
}

static const char *since_start(const struct text *t, u64 ticks)
{
	return units_time(summary_duration_ns(t->s, t->s->start, ticks));
}

/* ---- head -------------------------------------------------------------------------- */

static void argument(struct buf *b, const char *text, size_t length)
{
	struct buf word = { 0 };

	buf_word(&word, text, length);
	safe_bytes(b, word.at, word.used);
	buf_release(&word);
}

static void command_line(struct text *t)
{
	const struct session *s = t->s;
	size_t start = t->b.used;

	for (u32 at = 0; s->command && at < s->command_bytes && t->b.used - start < COMMAND_MAX;) {
		size_t length = strnlen(s->command + at, s->command_bytes - at);

		if (at)
			buf_char(&t->b, ' ');
		argument(&t->b, s->command + at, length < COMMAND_MAX ? length : COMMAND_MAX);
		at += length + 1;
		if (at < s->command_bytes && t->b.used - start >= COMMAND_MAX)
			buf_text(&t->b, " ...");
	}
	buf_char(&t->b, '\n');
}

/* An image that became another by exec is the same process. */
static u32 process_count(const struct session *s)
{
	u32 count = 0;

	for (u32 i = 0; i < s->processes; i++)
		count += s->process[i]->died != DIED_EXEC;
	return count;
}

static void head(struct text *t)
{
	const struct process *last = summary_last_image(t->s);
	char end[256] = "it sent no record: libmlprof.so was not loaded";

	text_heading(t, "mlprof");
	command_line(t);
	if (last)
		summary_end(last, end, sizeof end);
	buf_print(&t->b, "           %s, ", units_time(summary_duration_ns(t->s, t->s->start, t->s->end)));
	text_toned(t, last && last->died == DIED_SIGNAL ? RED : PLAIN, end);
	if (process_count(t->s) > 1)
		buf_print(&t->b, ", %u processes", process_count(t->s));
	buf_text(&t->b, "\n\n");
}

/* ---- peak -------------------------------------------------------------------------- */

static void peak(struct text *t)
{
	const struct scope *total = &t->s->total;
	struct summary_parts parts = summary_parts(total);
	u64 rss = summary_peak_rss(t->s);

	text_heading(t, "Peak");
	text_toned(t, BOLD, units_bytes(total->peak));
	buf_print(&t->b, " at %s: malloc %s, mmap %s", since_start(t, total->peak_ticks), units_bytes(parts.malloc),
		  units_bytes(parts.mmap));
	if (rss)
		buf_print(&t->b, "; highest RSS %s", units_bytes(rss));
	buf_char(&t->b, '\n');
	if (t->s->with_devices.peak > total->peak)
		buf_print(&t->b, "           with devices %s at %s: host %s, devices %s\n", units_bytes(t->s->with_devices.peak),
			  since_start(t, t->s->with_devices.peak_ticks), units_bytes(t->s->with_devices.peak - t->s->devices_then),
			  units_bytes(t->s->devices_then));
	buf_char(&t->b, '\n');
}

/* ---- tables ------------------------------------------------------------------------ */

static int larger_pool_first(const void *a, const void *b)
{
	const struct pool *x = *(const struct pool *const *)a, *y = *(const struct pool *const *)b;

	return x->peak < y->peak ? 1 : x->peak > y->peak ? -1 : 0;
}

static void pool_row(struct text *t, const struct pool *p)
{
	buf_print(&t->b, "%*s %11s %10s %10s %12s  ", FIRST_COLUMN, units_bytes(p->peak), since_start(t, p->peak_ticks),
		  units_count(p->allocs), units_count(p->frees), units_bytes(p->now));
	text_safe(&t->b, p->name);
	buf_char(&t->b, '\n');
}

/* The fixed ones in their order, then files, shared memory and heaps of libraries by size; devices have a table of their own. */
static u32 pools_to_show(const struct pool_list *list, const struct pool **sorted)
{
	u32 count = 0;

	for (u32 i = 0; i < list->count; i++)
		if (list->at[i].kind < POOL_DEVICE || list->at[i].kind == POOL_LIBRARY)
			sorted[count++] = &list->at[i];
	if (count > POOL_FIXED)
		qsort(sorted + POOL_FIXED, count - POOL_FIXED, sizeof *sorted, larger_pool_first);
	return count;
}

static void pools(struct text *t)
{
	const struct pool_list *list = &t->s->pools;
	const struct pool **sorted = calloc(list->count + 1, sizeof *sorted);
	u32 count = sorted ? pools_to_show(list, sorted) : 0;

	if (count) {
		text_table(t, "Pools", "peak", "          at     allocs      frees      at exit  name");
		for (u32 i = 0; i < count && i < POOL_FIXED + POOLS_MAX; i++)
			pool_row(t, sorted[i]);
		if (count > POOL_FIXED + POOLS_MAX)
			buf_print(&t->b, "                 ... and %u smaller ones\n", count - POOL_FIXED - POOLS_MAX);
		buf_char(&t->b, '\n');
	}
	free(sorted);
}

static int larger_process_first(const void *a, const void *b)
{
	const struct process *x = *(const struct process *const *)a, *y = *(const struct process *const *)b;

	if (x->total.peak != y->total.peak)
		return x->total.peak < y->total.peak ? 1 : -1;
	return x->index < y->index ? -1 : 1;
}

static void process_row(struct text *t, const struct process *p)
{
	char end[256];

	summary_end(p, end, sizeof end);
	buf_print(&t->b, "%*s %11s %10u  ", FIRST_COLUMN, units_bytes(p->total.peak),
		  since_start(t, p->total.peak_ticks), p->pid);
	text_safe(&t->b, p->name ? p->name : "?");
	buf_text(&t->b, ": ");
	text_safe(&t->b, end);
	buf_text(&t->b, p->silent && !p->not_followed ? ", no records\n" : "\n");
}

static void processes(struct text *t)
{
	const struct session *s = t->s;
	const struct process **sorted = calloc(s->processes + 1, sizeof *sorted);

	if (!sorted || s->processes < 2) {
		free(sorted);
		return;
	}
	for (u32 i = 0; i < s->processes; i++)
		sorted[i] = s->process[i];
	qsort(sorted, s->processes, sizeof *sorted, larger_process_first);
	text_table(t, "Processes", "peak", "          at        pid  name");
	for (u32 i = 0; i < s->processes && i < PROCESSES_MAX; i++)
		process_row(t, sorted[i]);
	if (s->processes > PROCESSES_MAX)
		buf_print(&t->b, "                 ... and %u more\n", s->processes - PROCESSES_MAX);
	buf_char(&t->b, '\n');
	free(sorted);
}

/* ---- the rest ---------------------------------------------------------------------- */

static void totals(struct text *t)
{
	const struct session *s = t->s;

	text_heading(t, "Totals");
	buf_print(&t->b, "%s allocations (%s/s, %s temporary) of %s in all\n", units_count(s->allocs),
		  units_count(s->allocs / summary_seconds(s)), units_percent(s->temporary, s->allocs),
		  units_bytes(s->allocated_bytes));
	text_heading(t, "At exit");
	buf_print(&t->b, "%s live in %s blocks\n", units_bytes(s->live_bytes), units_count(s->live_blocks));
}

static void cost(struct text *t)
{
	const struct session *s = t->s;
	u64 waited = summary_waited_ns(s);

	text_heading(t, "Cost");
	buf_print(&t->b, "%s records (%s/s), about %s in mlprof's hooks", units_count(s->events),
		  units_count(s->events / summary_seconds(s)), units_time(summary_hook_ns(s)));
	if (waited)
		buf_print(&t->b, ", of which %s waiting for the collector", units_time(waited));
	if (s->probe_sites)
		buf_print(&t->b, "; %s functions were found to probe in %s", units_count(s->probe_sites), units_time(s->bind_ns));
	buf_char(&t->b, '\n');
}

static const struct loss {
	size_t at;
	const char *what, *remedy;
} loss_rows[] = {
#define LOSS(field, what, remedy) { offsetof(struct losses, field), what, remedy }
	LOSS(records, "records were dropped, so the figures above are too low",
	     "use --on-full=block, and look for messages above"),
	LOSS(stacks, "stacks are cut short or missing", "code without unwind information; nothing to be done"),
	LOSS(symbols, "addresses have no name", "install debug symbols, or use --debuginfod"),
	LOSS(late, "records came too late to be put in order", "the machine was overloaded"),
	LOSS(bad_chunks, "pieces of the stream were damaged and left out", "a program may have written over them"),
	LOSS(unknown_frees, "blocks were freed that mlprof never saw being allocated",
	     "they come from before it was loaded or from a private allocator"),
	LOSS(unseen_frees, "blocks were freed unseen: others were allocated in their place", "they count as freed then"),
	LOSS(spans, "large blocks are not drawn in the trace", "use a higher --large"),
	LOSS(texts, "names were cut or left out", "they are too long, or too many to tell them all apart"),
	LOSS(unfinished, "pieces of device work were not over when their process ended", "the program did not wait for them"),
	LOSS(untimed, "pieces of device work have no times of their own", "the device or its queue cannot take them"),
	LOSS(unsized, "transfers moved an unknown number of bytes", "their image's format or the image itself is not known"),
	LOSS(failed, "pieces of device work failed", "the trace shows which"),
	LOSS(works, "calls and pieces of device work are not drawn in the trace", "there are more than a viewer can show"),
	LOSS(probe_values, "values of probed calls could not be read", "a pointer was not one, or the probe's row does not fit the library"),
	LOSS(probe_calls, "probed calls never returned", "their thread or process ended inside of them, or left them by longjmp"),
	LOSS(probe_frees, "blocks of a library's heap were freed that no probe saw being allocated", "they come from before, or a row is missing"),
	LOSS(unknown_ids, "records named a device, queue, name or memory that nobody told of",
	     "a forked child may use what its parent made"),
};

/* Times may be missing because nobody wanted them. */
static const char *remedy_of(const struct session *s, const struct loss *l)
{
	static const char *const asked[][2] = {
		{ "device-time=submit", "--device-time=submit: submissions are timed as a whole" },
		{ "device-time=off", "--device-time=off: the host saw no more than their submissions" },
	};

	for (u32 i = 0; i < s->options.count && l->at == offsetof(struct losses, untimed); i++)
		for (size_t k = 0; k < sizeof asked / sizeof asked[0]; k++)
			if (!strcmp(s->options.at[i], asked[k][0]))
				return asked[k][1];
	return l->remedy;
}

static void losses(struct text *t)
{
	const char *name = "Missing";

	for (size_t i = 0; i < sizeof loss_rows / sizeof loss_rows[0]; i++) {
		u64 count = *(const u64 *)((const char *)&t->s->losses + loss_rows[i].at);

		if (!count)
			continue;
		text_heading(t, name);
		buf_print(&t->b, "%s %s (%s)\n", units_count(count), loss_rows[i].what, remedy_of(t->s, &loss_rows[i]));
		name = "";
	}
}

static void notices(struct text *t)
{
	const struct text_list *list = &t->s->notices;

	for (u32 i = 0; i < list->count && i < NOTICES_MAX; i++) {
		text_heading(t, i ? "" : "Notes");
		text_safe(&t->b, list->at[i]);
		buf_char(&t->b, '\n');
	}
	if (list->count > NOTICES_MAX)
		buf_print(&t->b, "           ... and %u more\n", list->count - NOTICES_MAX);
}

int summary_text(int fd, const struct session *s, struct symbols *y, bool colour)
{
	static void (*const sections[])(struct text *t) = {
		head, peak, text_owners, pools, text_devices, text_device_owners, text_probes, text_tokens, processes, totals, text_waits, cost, losses, text_unseen, notices,
	};
	struct text t = { .s = s, .y = y, .colour = colour };

	for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
		sections[i](&t);
	int error = buf_write(&t.b, fd);

	buf_release(&t.b);
	return error;
}
