/*
 * summary_text_owners.c - whose memory a peak was made of, for people: a table of owners, under each the way to its
 * largest stack.
 *
 *   Held by    the peak of the run
 *   On device  that of a device whose memory is in the host's heap: there the driver holds it, here who asked for it
 */
#include "driver.h"
#include "summary_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	OWNERS_MAX = 8,         /* rows of the table ... */
	DEVICE_OWNERS_MAX = 4,  /* ... of a device */
	DEVICES_MAX = 3,
	SHARE_MIN = 100,        /* ... unless they hold less than one part in this many */
	CALLERS_MAX = 3,        /* lines under each */
	DEPTH_MAX = 512,
	HOLDERS_MAX = 1000,     /* stacks looked at to find the owners; the rest is small */
	OWNER_COLUMN = 46,
};

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
	struct driver_call driver;      /* call into a device's API that took it */
	u32 stacks;
	i64 bytes, blocks;
};

struct owners {
	struct owner *at;
	u32 count;
};

static bool same_owner(const struct owner *o, const struct frame *f, const struct module *m, const char *pool, struct driver_call driver)
{
	if (strcmp(o->pool, pool) || !o->frame != !f || !o->driver.name != !driver.name || o->driver.ours != driver.ours)
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
	struct driver_call driver = h->pool < POOL_FIXED ? driver_call(t->y, p, h->node) : (struct driver_call){ 0 };
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
	text_tone(t, DIM);
	text_safe(&t->b, summary_last_part(line[0] ? f->file : module->path));
	buf_text(&t->b, line);
	text_tone(t, PLAIN);
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

/* Who called the owner: what lies inside it is the allocator's business, and what lies inside of a device's API the driver's. */
static void callers(struct text *t, const struct owner *o)
{
	const struct process *p = t->s->process[o->largest->process];
	u32 outside = o->driver.name != NULL;   /* frames met from the owner on, itself included */
	u32 node = o->driver.name ? o->driver.caller : o->largest->node;

	for (u32 depth = 0; node && node < p->nodes && depth < DEPTH_MAX; depth++) {
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

/* The driver of a device took it, for itself or for what the program, or mlprof, asked of the device. */
static void driver_note(struct text *t, const struct owner *o)
{
	const struct device *d = driver_device(t->s->process[o->largest->process]);

	buf_text(&t->b, o->driver.ours ? "  (for mlprof's own use, driver" : "  (driver");
	if (d) {
		buf_text(&t->b, " of ");
		text_safe(&t->b, d->title);
	}
	if (*o->driver.name) {
		buf_text(&t->b, ", in ");
		text_safe(&t->b, o->driver.name);
	}
	buf_char(&t->b, ')');
}

static void owner_row(struct text *t, const struct owner *o, i64 peak)
{
	buf_print(&t->b, "%*s %8s %10s  ", FIRST_COLUMN, units_bytes(o->bytes), units_percent(o->bytes, peak), units_count(o->blocks));
	buf_print(&t->b, "%-6.*s  ", (int)strcspn(o->pool, ":"), o->pool);
	text_toned(t, BOLD, o->frame ? o->frame->function : "(no stack)");
	if (o->frame)
		place(t, o->frame, o->module);
	if (o->driver.name)
		driver_note(t, o);
	if (o->frame && o->stacks > 1)
		buf_print(&t->b, "  (%u stacks; the largest:)", o->stacks);
	if (o->frame)
		callers(t, o);
	buf_char(&t->b, '\n');
}

static void small_owners(struct text *t, const struct owners *all, u32 shown, i64 peak)
{
	i64 bytes = peak;

	for (u32 i = 0; i < shown; i++)
		bytes -= all->at[i].bytes;
	if (bytes > 0)
		buf_print(&t->b, "%*s %8s                     all others\n", FIRST_COLUMN, units_bytes(bytes), units_percent(bytes, peak));
}

static void owners_table(struct text *t, const char *name, const struct holder_list *list, i64 peak, u32 most)
{
	u32 looked_at = list->count < HOLDERS_MAX ? list->count : HOLDERS_MAX, shown = 1;
	struct owners all = { calloc(looked_at + 1, sizeof *all.at), 0 };

	if (!all.at || !list->count) {
		free(all.at);
		return;
	}
	for (u32 i = 0; i < looked_at; i++)
		add_holder(&all, t, &list->at[i]);
	qsort(all.at, all.count, sizeof *all.at, larger_first);
	while (shown < all.count && shown < most && all.at[shown].bytes >= peak / SHARE_MIN)
		shown++;

	text_table(t, name, "bytes", "        %     blocks  pool    owner");
	for (u32 i = 0; i < shown; i++)
		owner_row(t, &all.at[i], peak);
	small_owners(t, &all, shown, peak);
	buf_char(&t->b, '\n');
	free(all.at);
}

void text_owners(struct text *t)
{
	owners_table(t, "Held by", &shown_peak(t)->at_peak, shown_peak(t)->peak, OWNERS_MAX);
}

/* Memory of other devices, and of libraries, is part of the table above or stands among the pools. */
static bool is_in_heap(const struct device *d)
{
	return d->heaps && !device_counts(d) && !device_is_library(d);
}

void text_device_owners(struct text *t)
{
	u32 shown = 0;

	for (u32 i = 0; i < t->s->processes; i++) {
		const struct process *p = t->s->process[i];

		for (u32 k = 0; p->device_peak && k < p->devices; k++)
			if (is_in_heap(p->device[k]) && shown++ < DEVICES_MAX)
				owners_table(t, "On device", &p->device_peak[k], p->pools.at[p->device[k]->pool].peak, DEVICE_OWNERS_MAX);
	}
}
