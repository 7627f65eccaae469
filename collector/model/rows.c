/*
 * rows.c - rows of (stack, pool), and lists of who holds how much.
 */
#include "../util/radix.h"
#include "inside.h"

static u32 new_row(struct proc *p, u32 node, u32 pool)
{
	ARRAY_ROOM(p->row, p->row_room, p->rows + 1);
	p->row[p->rows] = (struct row) { .node = node, .pool = pool };
	return p->rows++;
}

static u32 malloc_row_of(struct proc *p, u32 node)
{
	u32 before = p->malloc_row_room;

	ARRAY_ROOM(p->malloc_row, p->malloc_row_room, node + 1);
	memset(p->malloc_row + before, 0, (p->malloc_row_room - before) * sizeof(*p->malloc_row));
	if (!p->malloc_row[node])
		p->malloc_row[node] = new_row(p, node, POOL_MALLOC) + 1;
	return p->malloc_row[node] - 1;
}

u32 row_of(struct proc *p, u32 node, u32 pool)
{
	struct row_key key = { node, pool };
	struct row_index *i;

	if (pool == POOL_MALLOC)
		return malloc_row_of(p, node);
	HASH_FIND(hh, p->row_index, &key, sizeof(key), i);
	if (!i) {
		i = new_zeroed(1, sizeof(*i));
		i->key = key;
		i->row = new_row(p, node, pool);
		HASH_ADD(hh, p->row_index, key, sizeof(i->key), i);
	}
	return i->row;
}

u64 row_frees(const struct row *r)
{
	return r->count[OUT] + r->count[OUT_TEMPORARY];
}

struct held row_now(const struct row *r)
{
	return (struct held) { (i64)(r->bytes[IN] - r->bytes[OUT]), (i64)(r->count[IN] - row_frees(r)) };
}

/* For an ascending sort that shall put the largest first. */
static u64 rank_of(i64 bytes)
{
	return INT64_MAX - (u64)bytes;
}

static struct holder holder_of(const struct proc *p, struct held h, u32 row)
{
	const struct row *r = &p->row[row];

	return (struct holder) {
		.process = p->p.index, .node = r->node, .pool = r->pool,
		.bytes = h.bytes, .blocks = h.blocks,
		.allocs = r->count[IN], .allocated_bytes = r->bytes[IN], .temporary = r->count[OUT_TEMPORARY],
	};
}

/* ROWS_HEAP: malloc and mmap, which are the total. */
static bool is_of(const struct proc *p, u32 pool, u32 of)
{
	if (of >= ROWS_POOL)
		return pool == of - ROWS_POOL;
	return pool < POOL_FIXED || (of == ROWS_WITH_DEVICES && p->p.pools.at[pool].kind == POOL_DEVICE);
}

/* Who held how much at a peak. */
struct holder_list rows_holders(const struct proc *p, const struct held *held, u32 rows, u32 of)
{
	struct ranked *list = must(malloc((2 * (size_t)rows + 1) * sizeof(*list))), *sorted;
	struct holder_list l = { 0 };
	u32 i;

	for (i = 0; i < rows; i++)
		if ((held[i].bytes || held[i].blocks) && is_of(p, p->row[i].pool, of))
			list[l.count++] = (struct ranked) { rank_of(held[i].bytes), i };
	sorted = radix_sort(list, l.count);
	l.at = must(malloc((l.count + 1) * sizeof(*l.at)));
	for (i = 0; i < l.count; i++)
		l.at[i] = holder_of(p, held[sorted[i].at], sorted[i].at);
	free(list);
	return l;
}

static_assert(sizeof(struct holder) <= sizeof(struct row), "rows_turned() writes one over the other");

/* Every row as it is now. They are many where somebody waits for the end, so each one becomes what it is asked for in its own place:
 * the process has no rows any more. */
struct holder_list rows_turned(struct proc *p)
{
	struct holder_list l = { (struct holder *)p->row, p->rows, false };
	u32 i;

	for (i = 0; i < p->rows; i++) {
		struct holder h = holder_of(p, row_now(&p->row[i]), i);

		memcpy((char *)p->row + i * sizeof(h), &h, sizeof(h));
	}
	p->row = NULL;
	p->rows = p->row_room = 0;
	return l;
}

struct holder_list holders_lent(struct holder_list l)
{
	l.lent = true;
	return l;
}

void holders_free(struct holder_list *l)
{
	if (!l->lent)
		free(l->at);
	*l = (struct holder_list) { 0 };
}

/* One list of several that are each in order. */
void holders_sort(struct holder_list *l)
{
	struct ranked *list = must(malloc((2 * (size_t)l->count + 1) * sizeof(*list))), *sorted;
	struct holder *at = must(malloc((l->count + 1) * sizeof(*at)));
	u32 i;

	for (i = 0; i < l->count; i++)
		list[i] = (struct ranked) { rank_of(l->at[i].bytes), i };
	sorted = radix_sort(list, l->count);
	for (i = 0; i < l->count; i++)
		at[i] = l->at[sorted[i].at];
	free(list);
	free(l->at);
	l->at = at;
}

/* The malloc pool's counts are sums over its rows. */
void rows_totals(struct proc *p)
{
	struct pool *malloc_pool = &p->p.pools.at[POOL_MALLOC];
	u32 i;

	p->p.temporary = malloc_pool->allocs = malloc_pool->frees = malloc_pool->allocated_bytes = 0;
	for (i = 0; i < p->rows; i++) {
		const struct row *r = &p->row[i];

		if (r->pool != POOL_MALLOC)
			continue;
		malloc_pool->allocs += r->count[IN];
		malloc_pool->frees += row_frees(r);
		malloc_pool->allocated_bytes += r->bytes[IN];
		p->p.temporary += r->count[OUT_TEMPORARY];
	}
	malloc_pool->blocks = (i64)(malloc_pool->allocs - malloc_pool->frees);
	p->p.allocs = malloc_pool->allocs;
	p->p.frees = malloc_pool->frees;
	p->p.allocated_bytes = malloc_pool->allocated_bytes;
}

void rows_release(struct proc *p)
{
	struct row_index *i, *next;

	HASH_ITER(hh, p->row_index, i, next) {
		HASH_DEL(p->row_index, i);
		free(i);
	}
	free(p->row);
	free(p->malloc_row);
	free(p->peak);
	free(p->tree_peak);
	free(p->all_peak);
	p->row = NULL;
	p->malloc_row = NULL;
	p->peak = p->tree_peak = p->all_peak = NULL;
	p->rows = p->row_room = p->malloc_row_room = p->peak_rows = p->tree_rows = p->all_rows = 0;
}
