/*
 * spans.c - blocks that are drawn one by one, from birth to death.
 *
 * There is room for SPANS_MAX. When it is used up, the smallest size that is drawn doubles until a quarter is
 * free again; what was dropped is counted.
 */
#include "inside.h"

enum { SPANS_MAX = 200000 };

static void drop_small_done(struct model *m)
{
	struct spans *a = &m->spans;
	u32 i, kept = 0;

	for (i = 0; i < a->dones; i++)
		if (a->done[i].size >= m->s.large)
			a->done[kept++] = a->done[i];
	m->s.losses.spans += a->dones - kept;
	a->dones = kept;
}

static void drop_small_open(struct model *m)
{
	struct open_span *o, *next;

	HASH_ITER(hh, m->spans.open, o, next) {
		if (o->span.size >= m->s.large)
			continue;
		HASH_DEL(m->spans.open, o);
		free(o);
		m->spans.opens--;
		m->s.losses.spans++;
	}
}

static void make_room(struct model *m)
{
	while (m->spans.opens + m->spans.dones > SPANS_MAX / 4 * 3) {
		m->s.large = m->s.large ? m->s.large * 2 : 1;
		if (!m->s.large)
			m->s.large = UINT64_MAX;
		drop_small_done(m);
		drop_small_open(m);
		if (m->s.large == UINT64_MAX)
			return;
	}
}

void span_open(struct model *m, struct span_key key, struct span span)
{
	struct open_span *o;

	if (span.size < m->s.large) {
		m->s.losses.spans++;
		return;
	}
	if (m->spans.opens + m->spans.dones >= SPANS_MAX)
		make_room(m);
	if (span.size < m->s.large)
		return;
	HASH_FIND(hh, m->spans.open, &key, sizeof(key), o);
	if (!o) {
		o = new_zeroed(1, sizeof(*o));
		o->key = key;
		HASH_ADD(hh, m->spans.open, key, sizeof(o->key), o);
		m->spans.opens++;
	}
	o->span = span;
}

static void finish(struct model *m, struct open_span *o)
{
	struct spans *a = &m->spans;

	ARRAY_ROOM(a->done, a->done_room, a->dones + 1);
	a->done[a->dones++] = o->span;
	HASH_DEL(a->open, o);
	free(o);
	a->opens--;
}

void span_close(struct model *m, struct span_key key, u64 ticks)
{
	struct open_span *o;

	HASH_FIND(hh, m->spans.open, &key, sizeof(key), o);
	if (!o)
		return;
	o->span.died = ticks;
	finish(m, o);
}

static int by_birth(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	if (x->born != y->born)
		return x->born < y->born ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->died < y->died ? -1 : x->died > y->died;
}

void spans_finish(struct model *m)
{
	struct open_span *o, *next;

	HASH_ITER(hh, m->spans.open, o, next)
		finish(m, o);
	if (m->spans.dones)
		qsort(m->spans.done, m->spans.dones, sizeof(*m->spans.done), by_birth);
	m->s.span = m->spans.done;
	m->s.spans = m->spans.dones;
}

void spans_release(struct model *m)
{
	struct open_span *o, *next;

	HASH_ITER(hh, m->spans.open, o, next) {
		HASH_DEL(m->spans.open, o);
		free(o);
	}
	free(m->spans.done);
}
