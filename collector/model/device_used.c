/*
 * device_used.c - which ranges of device memory its work uses.
 *
 * A sub-allocator's block says little about what it is made of. What is told of an object that takes up most of an
 * allocation is told of the allocation, too; those that had ranges and were there at their heap's peak are kept for the
 * summary, the largest ones.
 */
#include "inside.h"

enum { USED_MAX = 1024 };

static void add(struct used_list *l, u64 offset, u64 length, const char *name)
{
	if (l->count >= USED_MAX) {
		l->more++;
		return;
	}
	ARRAY_ROOM(l->at, l->room, l->count + 1);
	l->at[l->count++] = (struct used_range) { offset, length, name };
}

static void used(struct open_memory *o, const struct rec_memory_used *r, u64 offset, const char *name)
{
	o->used.looked = true;
	if (r->more > o->used.more)
		o->used.more = r->more;
	if (r->length)
		add(&o->used, offset + r->offset, r->length, name);
}

static bool lies_in(u64 offset, u64 length, u64 whole)
{
	return offset <= whole && length <= whole - offset;
}

void memory_used_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_memory_used *r = EVENT_BODY(e, memory_used);
	struct open_memory *o = memory_find(p, r->id);
	const char *name = o ? name_text(m, p, r->name) : NULL;

	(void)s;
	m->s.losses.unknown_ids += !o && !elder(p);
	if (!o || !lies_in(r->offset, r->length, o->m.length))
		return;
	used(o, r, 0, name);
	if (o->in && o->m.length > o->in->m.length / 2 && lies_in(o->m.offset, o->m.length, o->in->m.length))
		used(o->in, r, o->m.offset, name);
}

static int by_offset(const void *a, const void *b)
{
	const struct used_range *x = a, *y = b;

	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int largest_first(const void *a, const void *b)
{
	const struct used_range *x = a, *y = b;

	if (x->length != y->length)
		return x->length > y->length ? -1 : 1;
	return by_offset(a, b);
}

/* Ranges may overlap, and the same one may be told of several objects. */
static u64 together(const struct used_list *l)
{
	u64 sum = 0, end = 0;
	u32 i;

	for (i = 0; i < l->count; i++) {
		u64 from = l->at[i].offset > end ? l->at[i].offset : end, to = l->at[i].offset + l->at[i].length;

		if (to <= from)
			continue;
		sum += to - from;
		end = to;
	}
	return sum;
}

/* Before its end is told. */
void memory_used_settle(struct open_memory *o)
{
	struct used_list *l = &o->used;

	if (l->count)
		qsort(l->at, l->count, sizeof(*l->at), by_offset);
	o->m.used = (struct used_ranges) { .known = l->looked, .bytes = together(l), .more = l->more, .count = l->count };
	if (l->count)
		qsort(l->at, l->count, sizeof(*l->at), largest_first);
	o->m.used.at = l->at;
}

/* ---- for the summary --------------------------------------------------------------------- */

static bool at_peak(const struct device *d, const struct used_block *b)
{
	u64 peak = d->heap[b->heap].peak_ticks;

	return b->born <= peak && (!b->died || b->died > peak);
}

static void forget_block(struct device *d, u32 i)
{
	free(d->block[i].label);
	memmove(&d->block[i], &d->block[i + 1], (--d->blocks - i) * sizeof(*d->block));
}

static struct used_block block_of(const struct open_memory *o)
{
	struct used_block b = { .heap = o->m.heap, .bytes = o->m.bytes, .born = o->m.born, .died = o->m.died, .used = o->m.used };
	u32 i;

	b.used.at = NULL;
	for (i = 0; i < USED_RANGES && i < o->m.used.count; i++)
		b.range[b.ranges++] = o->m.used.at[i];
	return b;
}

/* All of them are gone by now: those of an earlier peak were not there at this one. */
static void leave_out(struct device_heap *h)
{
	h->blocks_left_out = h->left_out_at == h->peak_ticks ? h->blocks_left_out + 1 : 1;
	h->left_out_at = h->peak_ticks;
}

/* Largest first. */
static void keep(struct device *d, struct used_block b, const char *label)
{
	u32 i = d->blocks;

	while (i && d->block[i - 1].bytes < b.bytes)
		i--;
	if (d->blocks == USED_BLOCKS)
		leave_out(&d->heap[i < USED_BLOCKS ? d->block[USED_BLOCKS - 1].heap : b.heap]);
	if (i == USED_BLOCKS)
		return;
	if (d->blocks == USED_BLOCKS)
		forget_block(d, USED_BLOCKS - 1);
	if (!d->block)
		d->block = new_zeroed(USED_BLOCKS, sizeof(*d->block));
	memmove(&d->block[i + 1], &d->block[i], (d->blocks++ - i) * sizeof(*d->block));
	b.label = label ? text_copy(label, strlen(label)) : NULL;
	d->block[i] = b;
}

void memory_used_keep(const struct open_memory *o)
{
	struct device *d = o->m.device;
	struct used_block b = block_of(o);
	u32 i;

	if (!o->m.used.known || !o->m.bytes)
		return;
	for (i = d->blocks; i-- > 0;)
		if (!at_peak(d, &d->block[i]))
			forget_block(d, i);
	if (at_peak(d, &b))
		keep(d, b, o->m.label);
}

/* Those that were there at an earlier peak only. */
void device_used_close(struct device *d)
{
	u32 i;

	for (i = d->blocks; i-- > 0;)
		if (!at_peak(d, &d->block[i]))
			forget_block(d, i);
}

void device_used_release(struct device *d)
{
	while (d->blocks)
		forget_block(d, d->blocks - 1);
	free(d->block);
}
