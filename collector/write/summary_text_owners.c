/*
 * summary_text_owners.c - whose memory the peak was made of, for people: a table of owners, under each the way to its
 * largest stack.
 */
#include "driver.h"
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
	const char *driver;     /* call into a device's API that took it, NULL: none */
	bool ours;              /* ... for mlprof */
	u32 stacks;
	i64 bytes, blocks;
};

struct owners {
	struct owner *at;
	u32 count;
};

static bool same_owner(const struct owner *o, const struct frame *f, const struct module *m, const char *pool, const char *driver, bool ours)
{
	if (strcmp(o->pool, pool) || !o->frame != !f || !o->driver != !driver || o->ours != ours)
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
	bool ours = false;
	const char *driver = h->pool < POOL_FIXED ? driver_call(t->y, p, h->node, &ours) : NULL;
	u32 i = 0;

	while (i < all->count && !same_owner(&all->at[i], frame, module, pool, driver, ours))
		i++;
	struct owner *o = &all->at[i];

	if (i == all->count) {
		*o = (struct owner){ .frame = frame, .module = module, .largest = h, .pool = pool, .driver = driver, .ours = ours };
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

/* The driver of a device took it, for itself or for what the program, or mlprof, asked of the device. */
static void driver_note(struct text *t, const struct owner *o)
{
	const struct device *d = driver_device(t->s->process[o->largest->process]);

	buf_text(&t->b, o->ours ? "  (for mlprof's own use, driver" : "  (driver");
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
	text_toned(t, BOLD, o->frame ? o->frame->function : "(no stack)");
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

void text_owners(struct text *t)
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
