/*
 * naive.h - the model as plain as can be: records are sorted, taken one by one, and every sum is copied at every peak.
 *
 * What it shares with the real one is what the words mean (intake order, frees that come early), and no line of code. Addresses and
 * stacks are small numbers here, so that tables are arrays.
 */
#ifndef NAIVE_H
#define NAIVE_H

#include "../../collector/util/array.h"
#include <stdbool.h>

enum { IMAGES = 10, THREADS = 4, ADDRS = 64, STACKS = 7, MAPS = 4, EARLY = 64, NEAR = 1 << 14, ROWS = STACKS + 1 };
enum op_kind { ALLOC, FREE, LEAVE, ENTER, MAP, UNMAP, DIED };

struct op {
	u64 t, size, order;             /* order: of a stream, then of its records */
	enum op_kind kind;
	u32 image, thread, addr, stack;
	bool temporary;
};

struct held_row { i64 bytes, blocks; };
struct rows { struct held_row at[2][ROWS]; };           /* by pool and stack */
struct value { u64 t; i64 bytes; };

struct sum {
	i64 now, peak;
	u64 peak_t;
	struct value *value;            /* every one it had */
	u32 values, room;
};

struct naive_block { u64 size; u32 stack; bool live; };
struct naive_early { u64 t; u32 addr, thread; bool birth; };
struct naive_span { u64 born, died, size; u32 image, addr, stack, thread; };

struct naive_process {
	bool begun, over, forked;
	struct naive_block block[ADDRS], held[THREADS], map[MAPS];
	struct naive_early early[EARLY];
	u32 earlies;
	struct rows row, at_peak;
	struct sum malloc, mmap, total;
	u64 allocs, frees, allocated, temporary, unknown, unseen;
};

struct naive {
	struct naive_process p[IMAGES];
	struct sum malloc, total;
	struct rows at_peak[IMAGES];
	u64 large;
	struct naive_span *span;
	u32 spans, span_room;
	bool ambiguous;                 /* two threads freed an address at nearly the same time: see resolve.c */
	u64 freed[IMAGES][ADDRS][THREADS];      /* when */
};

static inline bool naive_add(struct sum *s, u64 t, i64 bytes)
{
	bool higher;

	s->now += bytes;
	ARRAY_ROOM(s->value, s->room, s->values + 1);
	s->value[s->values++] = (struct value) { t, s->now };
	higher = s->now > s->peak;
	if (higher) {
		s->peak = s->now;
		s->peak_t = t;
	}
	return higher;
}

static inline void naive_totals(struct naive *n, struct naive_process *p, u64 t, i64 bytes)
{
	u32 i;

	if (naive_add(&p->total, t, bytes))
		p->at_peak = p->row;
	if (naive_add(&n->total, t, bytes))
		for (i = 0; i < IMAGES; i++)
			n->at_peak[i] = n->p[i].over ? (struct rows) { 0 } : n->p[i].row;
}

static inline void naive_move(struct naive *n, struct naive_process *p, u64 t, i64 bytes)
{
	naive_add(&p->malloc, t, bytes);
	naive_add(&n->malloc, t, bytes);
	naive_totals(n, p, t, bytes);
}

static inline void naive_row(struct naive_process *p, u32 pool, u32 stack, i64 bytes, i64 blocks)
{
	p->row.at[pool][stack].bytes += bytes;
	p->row.at[pool][stack].blocks += blocks;
}

static inline void naive_span_end(struct naive *n, const struct op *o, u32 addr)
{
	u32 i;

	for (i = n->spans; i-- > 0;)
		if (n->span[i].image == o->image && n->span[i].addr == addr && !n->span[i].died) {
			n->span[i].died = o->t;
			return;
		}
}

static inline void naive_span_begin(struct naive *n, const struct op *o, u32 addr)
{
	if (o->size < n->large)
		return;
	ARRAY_ROOM(n->span, n->span_room, n->spans + 1);
	n->span[n->spans++] = (struct naive_span) { o->t, 0, o->size, o->image, addr, o->stack, o->thread };
}

static inline void naive_death(struct naive *n, struct naive_process *p, const struct op *o, bool temporary)
{
	struct naive_block *b = &p->block[o->addr];

	b->live = false;
	naive_span_end(n, o, o->addr);
	p->frees++;
	p->temporary += temporary;
	naive_row(p, 0, b->stack, -(i64)b->size, -1);
	naive_move(n, p, o->t, -(i64)b->size);
}

/* Did another thread come too early for this one? */
static inline bool naive_met(struct naive_process *p, const struct op *o, bool birth)
{
	u32 i;

	for (i = 0; i < p->earlies; i++)
		if (p->early[i].addr == o->addr && p->early[i].birth == birth && p->early[i].thread != o->thread) {
			for (p->earlies--; i < p->earlies; i++)
				p->early[i] = p->early[i + 1];
			return true;
		}
	return false;
}

static inline void naive_wait(struct naive_process *p, const struct op *o, bool birth)
{
	p->early[p->earlies++] = (struct naive_early) { o->t, o->addr, o->thread, birth };
}

static inline void naive_birth(struct naive *n, struct naive_process *p, const struct op *o, i64 before)
{
	if (p->block[o->addr].live) {   /* its free comes later, or was lost */
		naive_death(n, p, o, false);
		if (p->earlies == EARLY)
			p->unseen++;
		else
			naive_wait(p, o, true);
	}
	p->block[o->addr] = (struct naive_block) { o->size, o->stack, true };
	naive_span_begin(n, o, o->addr);
	p->allocs++;
	p->allocated += o->size;
	naive_row(p, 0, o->stack, (i64)o->size, 1);
	naive_move(n, p, o->t, (i64)o->size - before);
	if (naive_met(p, o, false))
		naive_death(n, p, o, false);
}

static inline void naive_free(struct naive *n, struct naive_process *p, const struct op *o)
{
	u64 *freed = n->freed[o->image][o->addr];
	u32 i;

	if (naive_met(p, o, true))
		;
	else if (p->block[o->addr].live)
		naive_death(n, p, o, o->temporary);
	else if (p->forked || p->earlies == EARLY)
		p->unknown++;
	else {
		for (i = 0; i < THREADS; i++)
			n->ambiguous |= i != o->thread && freed[i] && freed[i] + NEAR >= o->t;
		naive_wait(p, o, false);
	}
	freed[o->thread] = o->t;
}

static inline void naive_leave(struct naive *n, struct naive_process *p, const struct op *o)
{
	p->held[o->thread].live = false;
	if (naive_met(p, o, true))
		return;
	p->held[o->thread] = p->block[o->addr];
	p->unknown += !p->block[o->addr].live;
	if (p->block[o->addr].live)
		naive_span_end(n, o, o->addr);
	p->block[o->addr].live = false;
}

static inline void naive_enter(struct naive *n, struct naive_process *p, const struct op *o)
{
	struct naive_block b = p->held[o->thread];

	p->held[o->thread].live = false;
	if (b.live) {
		p->frees++;
		naive_row(p, 0, b.stack, -(i64)b.size, -1);
	}
	naive_birth(n, p, o, b.live ? (i64)b.size : 0);
}

static inline void naive_map(struct naive *n, struct naive_process *p, const struct op *o)
{
	struct naive_block *b = &p->map[o->addr];
	i64 change = b->live ? -(i64)b->size : 0;

	if (b->live) {
		naive_span_end(n, o, ADDRS + o->addr);
		naive_row(p, 1, b->stack, change, -1);
		b->live = false;
	}
	if (o->kind == MAP) {
		*b = (struct naive_block) { o->size, o->stack, true };
		naive_span_begin(n, o, ADDRS + o->addr);
		naive_row(p, 1, o->stack, (i64)o->size, 1);
		change += (i64)o->size;
	}
	if (!change)
		return;
	naive_add(&p->mmap, o->t, change);
	naive_totals(n, p, o->t, change);
}

/* What it waited for has not come. */
static inline void naive_give_up(struct naive_process *p, u64 before)
{
	u32 i, kept = 0;

	for (i = 0; i < p->earlies; i++)
		if (p->early[i].t >= before)
			p->early[kept++] = p->early[i];
		else if (p->early[i].birth)
			p->unseen++;
		else
			p->unknown++;
	p->earlies = kept;
}

static inline void naive_end(struct naive *n, struct naive_process *p, u64 t)
{
	if (p->over || !p->begun)
		return;
	naive_give_up(p, UINT64_MAX);
	n->malloc.now -= p->malloc.now;
	naive_add(&n->total, t, -p->total.now);
	p->over = true;
}

static inline void naive_take(struct naive *n, const struct op *o)
{
	struct naive_process *p = &n->p[o->image];

	if (o->kind == DIED) {
		naive_end(n, p, o->t);
		return;
	}
	if (p->over)
		return;
	p->begun = true;
	if (o->kind < MAP)
		naive_give_up(p, o->t < NEAR ? 0 : o->t - NEAR);
	switch (o->kind) {
	case ALLOC: naive_birth(n, p, o, 0); break;
	case FREE:  naive_free(n, p, o); break;
	case LEAVE: naive_leave(n, p, o); break;
	case ENTER: naive_enter(n, p, o); break;
	default:    naive_map(n, p, o); break;
	}
}

static inline void naive_free_all(struct naive *n)
{
	u32 i;

	for (i = 0; i < IMAGES; i++) {
		free(n->p[i].malloc.value);
		free(n->p[i].mmap.value);
		free(n->p[i].total.value);
	}
	free(n->malloc.value);
	free(n->total.value);
	free(n->span);
}

#endif
