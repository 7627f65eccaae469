/*
 * maps.c - the program's own mappings.
 *
 * Every event is: cut out what was there, put in what is there now, and move the sums of each pool once.
 * Anonymous memory counts while it is accessible. File and shared mappings have pools of their own.
 */
#include "inside.h"
#include <sys/mman.h>

struct change {                         /* of one event, by pool */
	struct model *m;
	struct proc *p;
	u64 ticks;
	struct { u32 pool; i64 bytes; bool in, out; } pool[32];
	u32 pools;
};

static u64 page_end(const struct model *m, u64 addr, u64 length)
{
	u64 page = m->s.head.page_size, end;

	if (page < 4096 || page > 1 << 20 || (page & (page - 1)))
		page = 4096;
	if (length > UINT64_MAX / 2 || addr > UINT64_MAX / 4)
		return addr;
	end = addr + length;
	return (end + page - 1) & ~(page - 1);
}

static void settle(struct change *c)
{
	u32 i;

	for (i = 0; i < c->pools; i++) {
		struct pool *pool = &c->p->p.pools.at[c->pool[i].pool];

		pool->allocs += c->pool[i].in;
		pool->frees += c->pool[i].out;
		if (c->pool[i].bytes)
			books_maps(c->m, c->p, c->ticks, c->pool[i].pool, c->pool[i].bytes);
	}
	c->pools = 0;
}

/* An event that touches more pools than there is room for moves the sums in several steps. */
static u32 slot_of(struct change *c, u32 pool)
{
	u32 i;

	for (i = 0; i < c->pools; i++)
		if (c->pool[i].pool == pool)
			return i;
	if (c->pools == sizeof(c->pool) / sizeof(*c->pool))
		settle(c);
	c->pool[c->pools].pool = pool;
	c->pool[c->pools].bytes = 0;
	c->pool[c->pools].in = c->pool[c->pools].out = false;
	return c->pools++;
}

/* Bytes of a mapping are gone; the mapping goes with its last one. */
static void lose(struct change *c, struct mapping *of, u64 bytes)
{
	struct pool *pool;
	u32 i;

	if (!of)
		return;
	of->bytes -= bytes;
	i = slot_of(c, of->pool);
	c->pool[i].bytes -= (i64)bytes;
	c->pool[i].out = true;
	books_enter(c->m, c->p, of->row, bytes, WHAT_OUT | (of->bytes ? 0 : WHAT_BLOCK));
	if (of->bytes)
		return;
	pool = &c->p->p.pools.at[of->pool];
	pool->blocks--;
	span_close(c->m, (struct span_key) { of->id, c->p->p.index, 1 }, c->ticks);
	free(of);
}

static struct mapping *new_mapping(struct change *c, u32 node, u32 pool)
{
	struct mapping *of = new_zeroed(1, sizeof(*of));

	of->id = ++c->p->mappings;
	of->pool = pool;
	of->row = row_of(c->p, node, pool);
	return of;
}

static void gain(struct change *c, struct mapping *of, u64 bytes)
{
	struct pool *pool = &c->p->p.pools.at[of->pool];
	u32 i = slot_of(c, of->pool);

	books_enter(c->m, c->p, of->row, bytes, of->bytes ? 0 : WHAT_BLOCK);
	pool->blocks += !of->bytes;
	pool->allocated_bytes += bytes;
	of->bytes += bytes;
	c->pool[i].bytes += (i64)bytes;
}

static void open_span(struct change *c, const struct mapping *of, u64 addr, u32 tid)
{
	if (of->pool != POOL_MMAP || of->bytes < c->m->s.head.large)
		return;
	span_open(c->m, (struct span_key) { of->id, c->p->p.index, 1 }, (struct span) {
		.born = c->ticks, .addr = addr, .size = of->bytes, .node = c->p->row[of->row].node,
		.tid = tid, .pool = of->pool, .process = c->p->p.index,
	});
}

static void remove_range(struct change *c, u64 start, u64 end)
{
	u32 i, n = ranges_cut(&c->p->ranges, start, end);

	for (i = 0; i < n; i++)
		lose(c, c->p->ranges.piece[i].of, c->p->ranges.piece[i].end - c->p->ranges.piece[i].start);
}

static void put_range(struct change *c, struct range r)
{
	if (r.start >= r.end || ranges_put(&c->p->ranges, r))
		return;
	lose(c, r.of, r.end - r.start);
	c->m->s.losses.records++;
}

static struct change begin(struct model *m, struct proc *p, const struct event *e)
{
	return (struct change) { .m = m, .p = p, .ticks = e->ticks };
}

void map_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_map *r = EVENT_BODY(e, map);
	struct change c = begin(m, p, e);
	struct range new = { r->addr, page_end(m, r->addr, r->length), NULL };

	if (new.start >= new.end || r->kind > MAP_KIND_SHARED)
		return;
	remove_range(&c, new.start, new.end);
	if (r->kind != MAP_KIND_ANON || (r->prot & (PROT_READ | PROT_WRITE | PROT_EXEC))) {
		u32 pool = pool_named(m, p, (int)r->kind, e->text, e->text_len);

		new.of = new_mapping(&c, node_of(m, p, s, (u32)r->node & NODE_MASK), pool);
		gain(&c, new.of, new.end - new.start);
		c.pool[slot_of(&c, pool)].in = true;
		open_span(&c, new.of, new.start, s->tid);
	}
	put_range(&c, new);
	settle(&c);
}

void unmap_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_unmap *r = EVENT_BODY(e, unmap);
	struct change c = begin(m, p, e);
	u64 end = page_end(m, r->addr, r->length);

	(void)s;
	if (r->addr < end)
		remove_range(&c, r->addr, end);
	settle(&c);
}

/* Memory that becomes accessible belongs to whoever made it so. */
static void open_up(struct change *c, u32 n, u32 node, u32 tid)
{
	struct range *piece = c->p->ranges.piece;
	struct mapping *of = NULL;
	u64 addr = 0;
	u32 i;

	for (i = 0; i < n; i++) {
		if (!piece[i].of) {
			addr = of ? addr : piece[i].start;
			of = of ? of : new_mapping(c, node, POOL_MMAP);
			gain(c, of, piece[i].end - piece[i].start);
			piece[i].of = of;
		}
		put_range(c, piece[i]);
	}
	if (!of)
		return;
	c->pool[slot_of(c, POOL_MMAP)].in = true;
	open_span(c, of, addr, tid);
}

static void shut(struct change *c, u32 n)
{
	struct range *piece = c->p->ranges.piece;
	u32 i;

	for (i = 0; i < n; i++) {
		if (piece[i].of && piece[i].of->pool == POOL_MMAP) {
			lose(c, piece[i].of, piece[i].end - piece[i].start);
			piece[i].of = NULL;
		}
		put_range(c, piece[i]);
	}
}

void protect_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_protect *r = EVENT_BODY(e, protect);
	struct change c = begin(m, p, e);
	u64 end = page_end(m, r->addr, r->length);
	u32 n = r->addr < end ? ranges_cut(&p->ranges, r->addr, end) : 0;

	if (!n)
		return;
	if (r->prot & (PROT_READ | PROT_WRITE | PROT_EXEC))
		open_up(&c, n, node_of(m, p, s, (u32)r->node & NODE_MASK), s->tid);
	else
		shut(&c, n);
	settle(&c);
}

/* The pieces of a range that mremap took away are put back at their new place, cut or lengthened. */
static void move_pieces(struct change *c, struct range *piece, u32 n, u64 from, u64 to, u64 end)
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct range r = { piece[i].start - from + to, piece[i].end - from + to, piece[i].of };
		u64 bytes = r.end - r.start;

		if (r.start >= end) {
			lose(c, r.of, bytes);
			continue;
		}
		if (r.end > end) {
			lose(c, r.of, r.end - end);
			r.end = end;
		} else if (i + 1 == n && r.end < end) {
			if (r.of)
				gain(c, r.of, end - r.end);
			r.end = end;
		}
		put_range(c, r);
	}
}

/* Length 0: the same shared memory a second time. */
static void duplicate(struct change *c, const struct rec_remap *r, u64 end, u32 node)
{
	const struct range *old = ranges_find(&c->p->ranges, r->old_addr);
	struct range new = { r->new_addr, end, NULL };
	u32 pool = old && old->of ? old->of->pool : POOL_MMAP;

	if (!old)
		return;
	remove_range(c, new.start, new.end);
	new.of = new_mapping(c, node, pool);
	gain(c, new.of, new.end - new.start);
	c->pool[slot_of(c, pool)].in = true;
	put_range(c, new);
}

void remap_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_remap *r = EVENT_BODY(e, remap);
	struct change c = begin(m, p, e);
	u64 old_end = page_end(m, r->old_addr, r->old_length), new_end = page_end(m, r->new_addr, r->new_length);
	struct range *piece;
	u32 n;

	if (r->new_addr >= new_end || r->old_addr > old_end)
		return;
	if (r->old_addr == old_end) {
		duplicate(&c, r, new_end, node_of(m, p, s, (u32)r->node & NODE_MASK));
		settle(&c);
		return;
	}
	n = ranges_cut(&p->ranges, r->old_addr, old_end);
	piece = must(malloc((n + 1) * sizeof(*piece)));
	if (n)
		memcpy(piece, p->ranges.piece, n * sizeof(*piece));
	remove_range(&c, r->new_addr, new_end);
	move_pieces(&c, piece, n, r->old_addr, r->new_addr, new_end);
	free(piece);
	settle(&c);
}

/* Mappings that still have bytes; each range frees its mapping when it is the last. */
void maps_release(struct proc *p)
{
	u32 i;

	for (i = 0; i < p->ranges.count; i++) {
		struct range *r = &p->ranges.at[i];

		if (!r->of)
			continue;
		r->of->bytes -= r->end - r->start;
		if (!r->of->bytes)
			free(r->of);
	}
	ranges_release(&p->ranges);
}
