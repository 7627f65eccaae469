/*
 * device_memory.c - the memory of devices: allocations, and what lies inside of them.
 *
 * An allocation has bytes of its own and is booked like a mapping, in a pool named after its device. What lies in other
 * memory (a buffer bound somewhere in an allocation, a part of a buffer, something imported) has none; an allocation
 * remembers the first BOUND_MAX of those that were ever in it.
 */
#include "inside.h"

enum { BOUND_MAX = 64, MEMORIES_MAX = 1 << 22 };
#define BYTES_MAX (1ull << 60)

struct open_memory *memory_find(const struct proc *p, u64 id)
{
	struct open_memory *o;

	HASH_FIND(hh, p->devices.memories, &id, sizeof(id), o);
	return o;
}

/* ---- sums -------------------------------------------------------------------------------- */

static i64 device_now(const struct device *d)
{
	i64 now = 0;
	u32 i;

	for (i = 0; i < d->heaps; i++)
		now += d->heap[i].now;
	return now;
}

static u32 heaps_used(const struct device *d)
{
	u32 i, n = 0;

	for (i = 0; i < d->heaps; i++)
		n += d->heap[i].used;
	return n;
}

static void begin_curve(struct model *m, struct proc *p, struct dev *d, struct curve *c, int heap, struct point from)
{
	*c = (struct curve) { .process = &p->p, .device = &d->d, .heap = heap };
	curve_tell(&m->curves, c, from);
}

/* Heaps get curves of their own when there is more than one. */
static void use_heap(struct model *m, struct proc *p, struct dev *d, u32 heap, u64 ticks)
{
	u32 i;

	if (d->d.heap[heap].used)
		return;
	if (!d->d.heaps) {
		books_device_use(m, p, d);
		begin_curve(m, p, d, &d->curve, -1, (struct point) { ticks, 0 });
	}
	d->d.heap[heap].used = true;
	if (heap >= d->d.heaps)
		d->d.heaps = heap + 1;
	if (heaps_used(&d->d) < 2)
		return;
	if (!d->heap_curve)
		d->heap_curve = new_zeroed(HEAPS_MAX, sizeof(*d->heap_curve));
	for (i = 0; i < d->d.heaps; i++)
		if (d->d.heap[i].used && !d->heap_curve[i].device)
			begin_curve(m, p, d, &d->heap_curve[i], (int)i, (struct point) { ticks, d->d.heap[i].now });
}

static void move(struct model *m, struct proc *p, struct dev *d, u32 heap, u64 ticks, i64 bytes)
{
	struct device_heap *h = &d->d.heap[heap];

	h->now += bytes;
	if (h->now > h->peak) {
		h->peak = h->now;
		h->peak_ticks = ticks;
	}
	books_device(m, p, d, ticks, bytes);
	books_note(m, &d->curve, ticks, device_now(&d->d));
	if (d->heap_curve)
		books_note(m, &d->heap_curve[heap], ticks, h->now);
}

static void book_in(struct model *m, struct proc *p, struct open_memory *o)
{
	struct dev *d = (struct dev *)o->m.device;
	struct pool *pool;

	use_heap(m, p, d, o->m.heap, o->m.born);
	pool = &p->p.pools.at[d->d.pool];
	o->row = row_of(p, o->m.node, d->d.pool);
	books_enter(m, p, o->row, o->m.bytes, WHAT_BLOCK);
	pool->blocks++;
	pool->allocs++;
	pool->allocated_bytes += o->m.bytes;
	d->d.allocs++;
	move(m, p, d, o->m.heap, o->m.born, (i64)o->m.bytes);
}

static void book_out(struct model *m, struct proc *p, struct open_memory *o, u64 ticks)
{
	struct dev *d = (struct dev *)o->m.device;
	struct pool *pool = &p->p.pools.at[d->d.pool];

	books_enter(m, p, o->row, o->m.bytes, WHAT_OUT | WHAT_BLOCK);
	pool->blocks--;
	pool->frees++;
	d->d.frees++;
	move(m, p, d, o->m.heap, ticks, -(i64)o->m.bytes);
}

/* ---- what lies in what ------------------------------------------------------------------- */

static void put_inside(struct open_memory *o, struct open_memory *in)
{
	o->in = in;
	o->next = in->inside;
	if (o->next)
		o->next->prev = o;
	in->inside = o;
	in->bounds++;
}

static void take_out(struct open_memory *o)
{
	if (!o->in)
		return;
	if (o->prev)
		o->prev->next = o->next;
	else
		o->in->inside = o->next;
	if (o->next)
		o->next->prev = o->prev;
	o->in = o->prev = o->next = NULL;
}

static struct bound bound_of(const struct open_memory *o)
{
	return (struct bound) {
		.what = text_copy(o->m.what, strlen(o->m.what)), .label = o->label ? text_copy(o->label, strlen(o->label)) : NULL,
		.offset = o->m.offset, .length = o->m.length,
	};
}

static void remember(struct open_memory *in, const struct open_memory *o)
{
	if (in->gone.count >= BOUND_MAX)
		return;
	ARRAY_ROOM(in->gone.at, in->gone.room, in->gone.count + 1);
	in->gone.at[in->gone.count++] = bound_of(o);
}

static void forget_gone(struct gone_list *l)
{
	while (l->count) {
		const struct bound *b = &l->at[--l->count];

		free((char *)b->what);
		free((char *)b->label);
	}
	free(l->at);
}

static int by_offset(const void *a, const void *b)
{
	const struct bound *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->length < y->length ? -1 : x->length > y->length;
}

/* ---- birth and death --------------------------------------------------------------------- */

/* What it is, and its arguments. */
static void set_texts(struct open_memory *o, struct arg_text text)
{
	u32 what = (u32)strnlen(text.at, text.length);

	o->text = text_copy(text.at, text.length);
	o->m.what = what ? o->text : "memory";
	if (what + 1 < text.length)
		o->m.args = (struct arg_text) { o->text + what + 1, text.length - what - 1 };
}

static void set_label(struct open_memory *o, struct arg_text text)
{
	free(o->label);
	o->label = text_copy(text.at, strnlen(text.at, text.length));
	o->m.label = o->label;
}

static void forget(struct proc *p, struct open_memory *o)
{
	struct open_memory *c, *next;

	for (c = o->inside; c; c = next) {
		next = c->next;
		c->in = c->prev = c->next = NULL;
	}
	take_out(o);
	HASH_DELETE(hh, p->devices.memories, o);
	forget_gone(&o->gone);
	free(o->used.at);
	free(o->text);
	free(o->label);
	free(o);
}

static void tell_end(struct model *m, struct proc *p, struct open_memory *o)
{
	struct open_memory *c;

	for (c = o->inside; c && o->gone.count < BOUND_MAX; c = c->next)
		remember(o, c);
	if (o->gone.count)
		qsort(o->gone.at, o->gone.count, sizeof(*o->gone.at), by_offset);
	o->m.bound = o->gone.at;
	o->m.bounds = o->gone.count;
	o->m.bound_count = o->bounds;
	memory_used_settle(o);
	memory_used_keep(o);
	if (m->listener.memory_end)
		m->listener.memory_end(m->listener.to, &p->p, &o->m);
}

void memory_end(struct model *m, struct proc *p, struct open_memory *o, u64 ticks)
{
	o->m.died = ticks;
	if (o->m.bytes)
		book_out(m, p, o, ticks);
	tell_end(m, p, o);
	if (o->in)
		remember(o->in, o);
	forget(p, o);
}

/* Takes all but the texts from `what`. */
void memory_begin(struct model *m, struct proc *p, const struct device_memory *what, struct arg_text text, struct arg_text label)
{
	struct open_memory *o = memory_find(p, what->id), *in = what->parent ? memory_find(p, what->parent) : NULL;

	if (o && o == in)
		in = NULL;
	if (o)                          /* its end was lost */
		memory_end(m, p, o, what->born);
	if (HASH_COUNT(p->devices.memories) >= MEMORIES_MAX) {
		m->s.losses.records++;
		return;
	}
	o = new_zeroed(1, sizeof(*o));
	o->m = *what;
	if (o->m.bytes >= BYTES_MAX)
		o->m.bytes = 0;
	set_texts(o, text);
	if (label.length)
		set_label(o, label);
	HASH_ADD(hh, p->devices.memories, m.id, sizeof(o->m.id), o);
	m->s.losses.unknown_ids += what->parent && !in && !elder(p);
	if (in)
		put_inside(o, in);
	if (o->m.bytes)
		book_in(m, p, o);
	else
		o->m.device->objects++;
	if (m->listener.memory)
		m->listener.memory(m->listener.to, &p->p, &o->m);
}

void device_alloc_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_device_alloc *r = EVENT_BODY(e, device_alloc);
	struct device_memory what = {
		.id = r->id, .parent = r->parent, .device = &dev_of(m, p, r->device)->d,
		.heap = r->heap < HEAPS_MAX ? (u32)r->heap : HEAPS_MAX - 1, .flags = (u32)r->flags, .tid = s->tid, .bytes = r->bytes,
		.offset = r->offset, .length = r->length, .born = e->ticks, .node = node_of(m, p, s, (u32)r->node & NODE_MASK),
	};

	memory_begin(m, p, &what, (struct arg_text) { e->text, e->text_len }, (struct arg_text) { 0 });
}

void device_free_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	struct open_memory *o = memory_find(p, EVENT_BODY(e, device_free)->id);

	(void)s;
	if (o)
		memory_end(m, p, o, e->ticks);
	else if (elder(p))              /* its parent's, where it lives on */
		p->p.inherited_frees++;
	else
		m->s.losses.unknown_ids++;
}

void memory_label(struct model *m, struct proc *p, u64 id, struct arg_text label)
{
	struct open_memory *o = memory_find(p, id);

	m->s.losses.unknown_ids += !o;
	if (o)
		set_label(o, label);
}

/* What is left when its process ends stays in the books: it was never freed. */
void memories_close(struct model *m, struct proc *p)
{
	struct open_memory *o, *next;

	HASH_ITER(hh, p->devices.memories, o, next)
		tell_end(m, p, o);
	memories_release(p);
}

void memories_release(struct proc *p)
{
	struct open_memory *o, *next;

	HASH_ITER(hh, p->devices.memories, o, next)
		forget(p, o);
}
