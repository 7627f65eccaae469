/*
 * summary_text.c - the summary for people: how much, when, whose, on about one screen.
 *
 *   command, duration, exit
 *   Peak       bytes, when, which part is malloc
 *   Held by    a table of owners; under each the way to its largest stack
 *   Pools      malloc, mmap, file mappings
 *   Devices    if there are any: summary_text_devices.c
 *   Processes  if there is more than one
 *   Totals     allocations, live at exit
 *   Missing    only what is not zero, with what to do
 */
#include "summary_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OWNERS_MAX = 8,         /* rows of the table */
	SHARE_MIN = 100,        /* ... unless they hold less than one part in this many */
	CALLERS_MAX = 3,        /* lines under each */
	DEPTH_MAX = 512,
	HOLDERS_MAX = 1000,     /* stacks looked at to find the owners; the rest is small */
	POOLS_MAX = 6,
	PROCESSES_MAX = 12,
	NOTICES_MAX = 12,
	COMMAND_MAX = 200,
	OWNER_COLUMN = 46,
};

enum tone { PLAIN, BOLD, DIM, RED };

static void tone(struct text *t, enum tone which)
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

static void toned(struct text *t, enum tone which, const char *text)
{
	tone(t, which);
	text_safe(&t->b, text);
	tone(t, PLAIN);
}

/* "Peak       ": the name of a section fills the first column. */
void text_heading(struct text *t, const char *name)
{
	toned(t, BOLD, name);
	buf_repeat(&t->b, ' ', 11 - (int)strlen(name));
}

/* The name of a table, with the heading of its first column above the end of that column. */
void text_table(struct text *t, const char *name, const char *first, const char *others)
{
	toned(t, BOLD, name);
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
	bool plain = length && strcspn(text, " \t\n'\"\\$&|;<>()*?#`!") >= length;

	if (plain) {
		safe_bytes(b, text, length);
		return;
	}
	buf_char(b, '\'');
	safe_bytes(b, text, length);
	buf_char(b, '\'');
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
	toned(t, last && last->died == DIED_SIGNAL ? RED : PLAIN, end);
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
	toned(t, BOLD, units_bytes(total->peak));
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

/* What the table of owners is about: with the memory of devices, where they have their own. */
static const struct scope *shown_peak(const struct text *t)
{
	return t->s->with_devices.peak > t->s->total.peak ? &t->s->with_devices : &t->s->total;
}

/* All stacks of one owner in one pool. */
struct owner {
	const struct frame *frame;
	const struct module *module;
	const struct holder *largest;
	const char *pool;
	const char *driver;     /* call into a device's API that took it, NULL: none */
	u32 stacks;
	i64 bytes, blocks;
};

struct owners {
	struct owner *at;
	u32 count;
};

static bool same_owner(const struct owner *o, const struct frame *f, const struct module *m, const char *pool, const char *driver)
{
	if (strcmp(o->pool, pool) || !o->frame != !f || !o->driver != !driver)
		return false;
	if (!f)
		return true;
	return !strcmp(o->frame->function, f->function) &&
		!strcmp(o->module ? o->module->path : "", m ? m->path : "");
}

static void add_holder(struct owners *all, struct text *t, const struct holder *h)
{
	const struct process *p = t->s->process[h->process];
	const struct module *module = NULL;
	const struct frame *frame = h->node ? symbols_owner(t->y, p, h->node, &module) : NULL;
	const char *pool = h->pool < p->pools.count ? p->pools.at[h->pool].name : "?";
	const char *driver = h->pool < POOL_FIXED ? summary_driver_call(t->y, p, h->node) : NULL;
	u32 i = 0;

	while (i < all->count && !same_owner(&all->at[i], frame, module, pool, driver))
		i++;
	struct owner *o = &all->at[i];

	if (i == all->count) {
		*o = (struct owner){ .frame = frame, .module = module, .largest = h, .pool = pool, .driver = driver };
		all->count++;
	}
	o->bytes += h->bytes;
	o->blocks += h->blocks;
	o->stacks++;
}

static int larger_first(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

/* "  file.c:12", or the module if the line is not known. */
static void place(struct text *t, const struct frame *f, const struct module *module)
{
	char line[24] = "";

	if (f->file && f->line)
		snprintf(line, sizeof line, ":%u", f->line);
	else if (!module || !f->named)
		return;
	buf_text(&t->b, "  ");
	tone(t, DIM);
	text_safe(&t->b, summary_last_part(line[0] ? f->file : module->path));
	buf_text(&t->b, line);
	tone(t, PLAIN);
}

static void caller_line(struct text *t, const struct frames *all, u32 i)
{
	const struct frame *f = &all->at[i];

	buf_print(&t->b, "\n%*sby ", OWNER_COLUMN + 2, "");
	text_safe(&t->b, f->function);
	if (i + 1 < all->count)
		buf_text(&t->b, " (inlined)");
	place(t, f, all->module);
}

/* Who called the owner: what lies inside it is the allocator's business. */
static void callers(struct text *t, const struct holder *h)
{
	const struct process *p = t->s->process[h->process];
	u32 outside = 0;        /* frames met from the owner on, itself included */

	for (u32 node = h->node, depth = 0; node && node < p->nodes && depth < DEPTH_MAX; depth++) {
		struct frames all = symbols_frames(t->y, p, node);

		for (u32 i = 0; i < all.count; i++) {
			outside += outside || !all.at[i].internal;
			if (outside > 1 && outside <= CALLERS_MAX + 1)
				caller_line(t, &all, i);
		}
		node = p->node[node].parent;
	}
	if (outside > CALLERS_MAX + 1)
		buf_print(&t->b, "  ... %u more", outside - CALLERS_MAX - 1);
}

/* The driver of a device took it, for itself or for what the program asked of the device. */
static void driver_note(struct text *t, const struct owner *o)
{
	const struct device *d = summary_driver_device(t->s->process[o->largest->process]);

	buf_text(&t->b, "  (driver");
	if (d) {
		buf_text(&t->b, " of ");
		text_safe(&t->b, d->title);
	}
	if (*o->driver) {
		buf_text(&t->b, ", in ");
		text_safe(&t->b, o->driver);
	}
	buf_char(&t->b, ')');
}

static void owner_row(struct text *t, const struct owner *o)
{
	buf_print(&t->b, "%*s %8s %10s  ", FIRST_COLUMN, units_bytes(o->bytes), units_percent(o->bytes, shown_peak(t)->peak),
		  units_count(o->blocks));
	buf_print(&t->b, "%-6.*s  ", (int)strcspn(o->pool, ":"), o->pool);
	toned(t, BOLD, o->frame ? o->frame->function : "(no stack)");
	if (o->frame)
		place(t, o->frame, o->module);
	if (o->driver)
		driver_note(t, o);
	if (o->frame && o->stacks > 1)
		buf_print(&t->b, "  (%u stacks; the largest:)", o->stacks);
	if (o->frame)
		callers(t, o->largest);
	buf_char(&t->b, '\n');
}

static void small_owners(struct text *t, const struct owners *all, u32 shown)
{
	i64 bytes = shown_peak(t)->peak;

	for (u32 i = 0; i < shown; i++)
		bytes -= all->at[i].bytes;
	if (bytes > 0)
		buf_print(&t->b, "%*s %8s                     all others\n", FIRST_COLUMN, units_bytes(bytes),
			  units_percent(bytes, shown_peak(t)->peak));
}

static void held_by(struct text *t)
{
	const struct holder_list *list = &shown_peak(t)->at_peak;
	u32 looked_at = list->count < HOLDERS_MAX ? list->count : HOLDERS_MAX;
	struct owners all = { calloc(looked_at + 1, sizeof *all.at), 0 };

	if (!all.at || !list->count) {
		free(all.at);
		return;
	}
	for (u32 i = 0; i < looked_at; i++)
		add_holder(&all, t, &list->at[i]);
	qsort(all.at, all.count, sizeof *all.at, larger_first);
	u32 shown = 1;

	while (shown < all.count && shown < OWNERS_MAX && all.at[shown].bytes >= shown_peak(t)->peak / SHARE_MIN)
		shown++;

	text_table(t, "Held by", "bytes", "        %     blocks  pool    owner");
	for (u32 i = 0; i < shown; i++)
		owner_row(t, &all.at[i]);
	small_owners(t, &all, shown);
	buf_char(&t->b, '\n');
	free(all.at);
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

/* The fixed ones in their order, then files and shared memory by size. */
static void pools(struct text *t)
{
	const struct pool_list *list = &t->s->pools;
	const struct pool **sorted = calloc(list->count + 1, sizeof *sorted);

	if (!sorted || !list->count) {
		free(sorted);
		return;
	}
	for (u32 i = 0; i < list->count; i++)
		sorted[i] = &list->at[i];
	if (list->count > POOL_FIXED)
		qsort(sorted + POOL_FIXED, list->count - POOL_FIXED, sizeof *sorted, larger_pool_first);
	text_table(t, "Pools", "peak", "          at     allocs      frees      at exit  name");
	for (u32 i = 0; i < list->count && i < POOL_FIXED + POOLS_MAX; i++)
		pool_row(t, sorted[i]);
	if (list->count > POOL_FIXED + POOLS_MAX)
		buf_print(&t->b, "                 ... and %u smaller ones\n", list->count - POOL_FIXED - POOLS_MAX);
	buf_char(&t->b, '\n');
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
	LOSS(spans, "large blocks are not drawn in the trace", "use a higher --large"),
	LOSS(texts, "long names were cut", "nothing to be done"),
	LOSS(unfinished, "pieces of device work were not over when their process ended", "the program did not wait for them"),
	LOSS(untimed, "pieces of device work have no times", "the device or its queue cannot take them"),
	LOSS(failed, "pieces of device work failed", "the trace shows which"),
	LOSS(works, "calls and pieces of device work are not drawn in the trace", "there are more than a viewer can show"),
	LOSS(unknown_ids, "records named a device, queue, name or memory that nobody told of",
	     "a forked child may use what its parent made"),
};

static void losses(struct text *t)
{
	const char *name = "Missing";

	for (size_t i = 0; i < sizeof loss_rows / sizeof loss_rows[0]; i++) {
		u64 count = *(const u64 *)((const char *)&t->s->losses + loss_rows[i].at);

		if (!count)
			continue;
		text_heading(t, name);
		buf_print(&t->b, "%s %s (%s)\n", units_count(count), loss_rows[i].what, loss_rows[i].remedy);
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
		head, peak, held_by, pools, text_devices, processes, totals, text_waits, cost, losses, notices,
	};
	struct text t = { .s = s, .y = y, .colour = colour };

	for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++)
		sections[i](&t);
	int error = buf_write(&t.b, fd);

	buf_release(&t.b);
	return error;
}
