/*
 * curve.c - the current bucket of every curve, and what is left of it.
 */
#include "curve.h"
#include "../util/array.h"

enum { BUCKETS = 10000 };

static void tell(struct curves *b, struct curve *c, struct point p)
{
	if (c->begun && c->told.value == p.value)
		return;
	curve_tell(b, c, p);
}

void curve_tell(struct curves *b, struct curve *c, struct point p)
{
	c->begun = true;
	c->told = p;
	if (!b->listener)
		return;
	if (c->device && b->listener->device_point)
		b->listener->device_point(b->listener->to, c->process, c->device, c->heap, p.ticks, p.value);
	else if (!c->device && b->listener->point)
		b->listener->point(b->listener->to, c->process, c->kind, p.ticks, p.value);
}

static void empty(struct curves *b, struct curve *c)
{
	bool min_first = c->min.ticks <= c->max.ticks;

	tell(b, c, min_first ? c->min : c->max);
	tell(b, c, min_first ? c->max : c->min);
	tell(b, c, c->last);
	c->touched = false;
}

static u64 rank(const struct curve *c)
{
	u64 first = c->device ? CURVES + (u64)c->device->index * (HEAPS_MAX + 1) + (u64)(c->heap + 1) : c->kind;

	return c->process ? (u64)(c->process->index + 1) << 40 | first : c->kind == CURVE_WITH_DEVICES;
}

static int by_rank(const void *a, const void *b)
{
	u64 x = rank(*(struct curve *const *)a), y = rank(*(struct curve *const *)b);

	return x < y ? -1 : x > y;
}

void curves_close(struct curves *b, u64 ticks)
{
	u64 width = (ticks - b->start) / BUCKETS;
	u32 i;

	if (b->count > 1)
		qsort(b->touched, b->count, sizeof(*b->touched), by_rank);
	for (i = 0; i < b->count; i++)
		empty(b, b->touched[i]);
	b->count = 0;
	b->end = ticks + (width > b->least ? width : b->least);
}

static struct point moved(struct point p, i64 offset)
{
	return (struct point) { p.ticks, p.value + offset };
}

static void touch(struct curves *b, struct curve *c)
{
	ARRAY_ROOM(b->touched, b->room, b->count + 1);
	b->touched[b->count++] = c;
	c->touched = true;
}

void curve_note(struct curves *b, struct curve *c, const struct swing *s, i64 offset)
{
	struct point min = moved(s->min, offset), max = moved(s->max, offset);

	if (!c->touched) {
		touch(b, c);
		c->min = min;
		c->max = max;
	}
	if (min.value < c->min.value)
		c->min = min;
	if (max.value > c->max.value)
		c->max = max;
	c->last = moved(s->last, offset);
}

void curve_finish(struct curves *b, struct curve *c, struct point last)
{
	u32 i;

	for (i = 0; c->touched && i < b->count; i++) {
		if (b->touched[i] != c)
			continue;
		empty(b, c);
		b->touched[i] = b->touched[--b->count];
	}
	if (c->begun && (c->told.value != last.value || c->told.ticks < last.ticks))
		curve_tell(b, c, last);
}
