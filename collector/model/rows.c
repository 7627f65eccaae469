/*
 * rows.c - rows of (stack, pool), and lists of who holds how much.
 */
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

struct held row_now(const struct row *r)
{
	return (struct held) { (i64)(r->bytes[IN] - r->bytes[OUT]), (i64)(r->count[IN] - r->count[OUT]) };
}

static int by_size(const void *a, const void *b)
{
	const struct holder *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->blocks != y->blocks)
		return x->blocks > y->blocks ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->pool < y->pool ? -1 : x->pool > y->pool;
}

void holders_sort(struct holder_list *l)
{
	if (l->count)
		qsort(l->at, l->count, sizeof(*l->at), by_size);
}

static bool is_of(const struct proc *p, u32 pool, u32 of)
{
	if (of >= ROWS_POOL)
		return pool == of - ROWS_POOL;
	return pool < POOL_FIXED || (of == ROWS_WITH_DEVICES && p->p.pools.at[pool].kind == POOL_DEVICE);
}

/* Rows that hold something; held NULL: as of now, and also those that gave everything back. ROWS_HEAP: malloc and
 * mmap, which are the total. */
struct holder_list rows_holders(const struct proc *p, const struct held *held, u32 rows, u32 of)
{
	struct holder_list l = { 0 };
	u32 i, room = 0;

	for (i = 0; i < rows; i++) {
		const struct row *r = &p->row[i];
		struct held h = held ? held[i] : row_now(r);

		if ((held && !h.bytes && !h.blocks) || !is_of(p, r->pool, of))
			continue;
		ARRAY_ROOM(l.at, room, l.count + 1);
		l.at[l.count++] = (struct holder) {
			.process = p->p.index, .node = r->node, .pool = r->pool,
			.bytes = h.bytes, .blocks = h.blocks,
			.allocs = r->count[IN], .allocated_bytes = r->bytes[IN], .temporary = r->temporary,
		};
	}
	holders_sort(&l);
	return l;
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
		malloc_pool->frees += r->count[OUT];
		malloc_pool->allocated_bytes += r->bytes[IN];
		p->p.temporary += r->temporary;
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
