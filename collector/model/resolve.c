/*
 * resolve.c - what plain records say becomes what changed: a free finds its block, a row gives or takes bytes.
 *
 *   rec {address, alloc or free} --live table--> block {size, row} --> row, journal entry, step of the malloc total
 *
 * Nearly all go through take_stretch(), without a branch that depends on them; what it leaves is taken one by one.
 *
 * A CPU may read its clock while the load that brought an address is still under way, so that the stamp is a little older
 * than that of the other thread from which the address came. Records of one thread are in their true order.
 *
 *   A free that is older than its block waits for it. One of the thread that then makes a block at the address is not such
 *   a free; unless another thread has freed the address just before, too: then one of the two came too early, whichever.
 *   A block that is older than the free of the one that lay there takes its place, and waits for that free of another
 *   thread, which then is not its own.
 */
#include "inside.h"

enum { STRETCH = 16, MANY_BLOCKS = 1 << 15 };
enum { EARLY_TICKS = 1 << 14 };         /* 6 us: more than any load takes, also in a guest whose page tables are not in the cache */

static inline void post(struct row *r, u64 size, u32 what)
{
	r->bytes[what & WHAT_OUT] += size;
	r->count[what & WHAT_WAY]++;
}

static void enter(struct pen *w, struct proc *p, struct step step, u64 size, u32 row, u32 what)
{
	post(&p->row[row], size, what);
	*w->entry++ = (struct entry) { size, row, what | p->p.index << WHAT_PROCESS_SHIFT };
	*w->step++ = step;
}

static void enter_birth(struct pen *w, struct proc *p, u64 ticks, u64 value)
{
	u64 size = value >> NODE_BITS;

	enter(w, p, (struct step) { (i64)size, ticks }, size, value & NODE_MASK, WHAT_BLOCK);
}

static void enter_death(struct pen *w, struct proc *p, u64 ticks, u64 size, u32 row, u32 temporary)
{
	enter(w, p, (struct step) { -(i64)size, ticks }, size, row, WHAT_BLOCK | WHAT_OUT | temporary);
}

static void put_huge(struct proc *p, u64 addr, u64 size)
{
	struct huge_block *h;

	HASH_FIND(hh, p->huge, &addr, sizeof(addr), h);
	if (!h) {
		h = new_zeroed(1, sizeof(*h));
		h->addr = addr;
		HASH_ADD(hh, p->huge, addr, sizeof(h->addr), h);
	}
	h->size = size;
}

static u64 take_huge(struct proc *p, u64 addr)
{
	struct huge_block *h;
	u64 size = 0;

	HASH_FIND(hh, p->huge, &addr, sizeof(addr), h);
	if (h) {
		size = h->size;
		HASH_DEL(p->huge, h);
		free(h);
	}
	return size;
}

/* What a block that has just left the live table was, when its size says that there is more to do. */
static u64 leave_large(struct model *m, struct proc *p, u64 addr, u64 value, u64 ticks)
{
	u64 size = value >> NODE_BITS;

	if (size == PLAIN_SIZE_LIMIT)
		size = take_huge(p, addr);
	span_close(m, (struct span_key) { addr, p->p.index, 0 }, ticks);
	return size;
}

static u64 size_of_left(struct model *m, struct proc *p, u64 addr, u64 value, u64 ticks)
{
	u64 size = value >> NODE_BITS;

	if (size >= m->s.head.large || size == PLAIN_SIZE_LIMIT)
		return leave_large(m, p, addr, value, ticks);
	return size;
}

static void count_unknown(struct proc *p)
{
	if (p->p.forked)
		p->p.inherited_frees++;
	else
		p->p.unknown_frees++;
}

/* ---- records that come before those they follow ------------------------------------------- */

static void forget_early(struct proc *p, u32 i)
{
	memmove(&p->early[i], &p->early[i + 1], (--p->earlies - i) * sizeof(*p->early));
}

/* What it waited for does not come. */
static void give_up(struct proc *p, bool birth)
{
	if (birth)
		p->p.unseen_frees++;
	else
		count_unknown(p);
}

static void give_up_old(struct proc *p, u64 now)
{
	u32 i = 0;

	while (i < p->earlies) {
		if (p->early[i].ticks + EARLY_TICKS >= now) {
			i++;
			continue;
		}
		give_up(p, p->early[i].birth);
		forget_early(p, i);
	}
}

void resolve_give_up(struct proc *p)
{
	give_up_old(p, UINT64_MAX);
}

static void keep_early(struct proc *p, struct early e)
{
	if (p->earlies == EARLIES || (p->p.forked && !e.birth))         /* a child frees what its parent made: that never comes */
		give_up(p, e.birth);
	else
		p->early[p->earlies++] = e;
}

/* Is this what such a one of another thread waits for? Then it does no longer. */
static bool meets_early(struct proc *p, bool birth, u64 addr, const struct stream *s)
{
	u32 i;

	for (i = 0; i < p->earlies; i++)
		if (p->early[i].addr == addr && p->early[i].birth == birth && p->early[i].stream != s) {
			forget_early(p, i);
			return true;
		}
	return false;
}

/* ---- one by one -------------------------------------------------------------------------- */

/* A block is made where one was thought to be: its free is still to come, or was not seen. */
static void drop_stale(struct model *m, struct proc *p, struct pen *w, const struct stream *s, u64 addr, u64 value, u64 ticks)
{
	u64 size = size_of_left(m, p, addr, value, ticks);

	enter_death(w, p, ticks, size, value & NODE_MASK, 0);
	keep_early(p, (struct early) { addr, ticks, s, true });
}

static void put_block(struct model *m, struct proc *p, struct pen *w, const struct stream *s, u64 addr, u64 value, u64 ticks)
{
	u64 stale = value;

	if (unlikely(live_put(&p->live, addr, &stale)))
		drop_stale(m, p, w, s, addr, stale, ticks);
}

static void open_block_span(struct model *m, struct proc *p, const struct extra *x, u32 row, u64 ticks)
{
	if (x->size < m->s.head.large)
		return;
	span_open(m, (struct span_key) { x->addr, p->p.index, 0 }, (struct span) {
		.born = ticks, .addr = x->addr, .size = x->size, .node = p->row[row].node,
		.tid = x->stream->tid, .pool = POOL_MALLOC, .process = p->p.index,
	});
}

/* A block is born; `before` bytes of its older self go in the same step. */
static void take_birth(struct model *m, struct proc *p, struct pen *w, const struct extra *x, u64 ticks, i64 before)
{
	u32 row = label_of(m, p, x->stream, x->node);
	u64 size = x->size < PLAIN_SIZE_LIMIT ? x->size : PLAIN_SIZE_LIMIT;

	if (x->size >> 62)              /* no machine has this */
		return;
	put_block(m, p, w, x->stream, x->addr, size << NODE_BITS | row, ticks);
	if (size == PLAIN_SIZE_LIMIT)
		put_huge(p, x->addr, x->size);
	open_block_span(m, p, x, row, ticks);
	enter(w, p, (struct step) { (i64)x->size - before, ticks }, x->size, row, WHAT_BLOCK);
}

/* The old block of a realloc stays in the sums until the new one is there. */
static void take_leave(struct model *m, struct proc *p, const struct extra *x, u64 ticks)
{
	struct held_block *h = &x->stream->held;
	u64 value = 0;

	h->found = false;
	if (meets_early(p, true, x->addr, x->stream))
		return;
	h->found = live_take(&p->live, x->addr, &value);
	if (!h->found) {
		count_unknown(p);
		return;
	}
	h->size = size_of_left(m, p, x->addr, value, ticks);
	h->row = value & NODE_MASK;
}

static void take_enter(struct model *m, struct proc *p, struct pen *w, const struct extra *x, u64 ticks)
{
	struct held_block h = x->stream->held;

	x->stream->held.found = false;
	if (!h.found) {
		take_birth(m, p, w, x, ticks, 0);
		return;
	}
	enter(w, p, (struct step) { 0, ticks }, h.size, h.row, WHAT_BLOCK | WHAT_OUT);
	take_birth(m, p, w, x, ticks, (i64)h.size);
}

/* True: the block was there, and is no longer. */
static bool bury(struct model *m, struct proc *p, struct pen *w, u64 addr, u64 ticks, u32 temporary)
{
	u64 value, size;

	if (unlikely(!live_take(&p->live, addr, &value)))
		return false;
	size = size_of_left(m, p, addr, value, ticks);
	enter_death(w, p, ticks, size, value & NODE_MASK, temporary);
	return true;
}

static void take_death(struct model *m, struct proc *p, struct pen *w, const struct stream *s, u64 addr, u64 ticks, u32 temporary)
{
	if (!meets_early(p, true, addr, s) && !bury(m, p, w, addr, ticks, temporary))
		keep_early(p, (struct early) { addr, ticks, s, false });
}

/* A block has been born: perhaps somebody has freed it already. */
static void bury_early(struct model *m, struct proc *p, struct pen *w, const struct stream *s, u64 addr, u64 ticks)
{
	if (meets_early(p, false, addr, s))
		bury(m, p, w, addr, ticks, 0);
}

static void take_extra(struct model *m, struct proc *p, struct pen *w, const struct extra *x, u64 ticks)
{
	switch (x->kind) {
	case EXTRA_ALLOC: take_birth(m, p, w, x, ticks, 0); break;
	case EXTRA_FREE:  take_death(m, p, w, x->stream, x->addr, ticks, 0); break;
	case EXTRA_LEAVE: take_leave(m, p, x, ticks); break;
	case EXTRA_ENTER: take_enter(m, p, w, x, ticks); break;
	case EXTRA_EVENT: break;
	}
	if (x->kind == EXTRA_ALLOC || x->kind == EXTRA_ENTER)
		bury_early(m, p, w, x->stream, x->addr, ticks);
}

static inline u64 addr_of(const struct rec *r)
{
	return r->a & PACKED_ADDR_MASK;
}

/* What live_turn() would not do. */
static void take_odd_block(struct model *m, struct proc *p, struct pen *w, const struct rec *r, const struct stream *s, u64 ticks)
{
	if (r->a & REC_FREE) {
		take_death(m, p, w, s, addr_of(r), ticks, r->a & WHAT_TEMPORARY);
		return;
	}
	put_block(m, p, w, s, addr_of(r), r->w, ticks);
	enter_birth(w, p, ticks, r->w);
	bury_early(m, p, w, s, addr_of(r), ticks);
}

static inline const struct rec *rec_at(const struct window *w, u32 i)
{
	return &w->rec[w->key[i] & KEY_INDEX_MASK];
}

static inline u64 ticks_at(const struct window *w, u32 i)
{
	return w->base + (w->key[i] >> KEY_TIME_SHIFT);
}

static const struct stream *stream_at(const struct window *w, u32 i)
{
	u32 place = w->key[i] & KEY_INDEX_MASK;
	const struct run *r = w->run;

	while (r->end <= place)
		r++;
	return r->stream;
}

static inline bool is_plain(const struct rec *r)
{
	return r->a & REC_PLAIN;
}

/* The next record frees the block that this one makes. */
static inline bool is_brief(u64 a, u64 next)
{
	return next - a == (REC_FREE | REC_TEMPORARY);
}

/*
 * Takes records [i, end) of p until one is not plain, or brief, or of another process, or nothing for live_turn().
 * Returns where it stopped.
 */
static u32 take_stretch(struct proc *p, u64 image, const struct window *w, u32 i, u32 end, struct pen *pen, u64 odd)
{
	const struct rec *r, *rec = w->rec, *next = rec_at(w, i);
	const u64 *key = &w->key[i], *key_end = &w->key[end], base = w->base;
	const u32 who = p->p.index << WHAT_PROCESS_SHIFT;
	struct entry *entry = pen->entry;
	struct step *step = pen->step;
	struct row *row = p->row;

	for (; key < key_end; key++) {
		u64 a = next->a, addr = (a ^ image) & ~7ull, leaves = a & REC_FREE, value, size;

		r = next;
		next = &rec[key[1] & KEY_INDEX_MASK];
		if (unlikely(addr >> REC_IMAGE_SHIFT || !(a & REC_PLAIN) || is_brief(a, next->a)))
			break;
		value = r->w;
		if (unlikely(!live_turn(&p->live, addr, leaves, &value, odd)))
			break;
		size = value >> NODE_BITS;
		post(&row[value & NODE_MASK], size, (u32)a);
		*entry++ = (struct entry) { size, value & NODE_MASK, (a & 7) | who };
		*step++ = (struct step) { (i64)((size ^ -leaves) + leaves), base + (*key >> KEY_TIME_SHIFT) };
	}
	pen->entry = entry;
	pen->step = step;
	return (u32)(key - w->key);
}

static u32 least(u32 a, u32 b)
{
	return a < b ? a : b;
}

/* The live table's places for the stretch at record i are on their way to the cache, and what leads to those of the next. */
static inline __attribute__((always_inline)) void fetch(struct live *l, const struct window *w, u32 i, u32 end)
{
	u32 next = least(i + STRETCH, end), after = least(next + STRETCH, end);

	for (; i < next; i++)
		live_fetch_block(l, addr_of(rec_at(w, i)), rec_at(w, i)->a & REC_FREE);
	for (; i < after; i++)
		live_fetch_group(l, addr_of(rec_at(w, i)));
}

static bool many_blocks(const struct proc *p)
{
	return p->p.pools.at[POOL_MALLOC].now > MANY_BLOCKS * 64ll;
}

/* Takes the plain records of p, whose first is record i. Returns where it stopped. */
static u32 take_plain(struct proc *p, const struct window *w, u32 i, u32 end, struct pen *pen, u64 odd)
{
	const u64 image = rec_at(w, i)->a >> REC_IMAGE_SHIFT << REC_IMAGE_SHIFT;
	bool many = many_blocks(p);
	u32 until;

	do {
		until = least(i + STRETCH, end);
		if (many)               /* more than the cache holds: look ahead */
			fetch(&p->live, w, until, end);
		i = take_stretch(p, image, w, i, until, pen, odd);
	} while (i == until && i < end);
	return i;
}

/* Takes pairs of records that are a block's birth and death: they need not go through the live table. */
static u32 take_brief(struct proc *p, const struct window *w, u32 i, u32 end, struct pen *pen)
{
	for (; i + 1 < end; i += 2) {
		const struct rec *r = rec_at(w, i);

		if (!is_plain(r) || !is_brief(r->a, rec_at(w, i + 1)->a) || w->image[r->a >> REC_IMAGE_SHIFT]->model != p)
			break;
		if (unlikely(!live_lacks(&p->live, addr_of(r))))
			break;
		enter_birth(pen, p, ticks_at(w, i), r->w);
		enter_death(pen, p, ticks_at(w, i + 1), r->w >> NODE_BITS, r->w & NODE_MASK, WHAT_TEMPORARY);
	}
	return i;
}

/* Another thread has freed the same address just before record i did. */
static bool freed_twice(const struct window *w, u32 i)
{
	u32 j = i;

	while (j-- > 0 && ticks_at(w, j) + EARLY_TICKS >= ticks_at(w, i)) {
		const struct rec *r = rec_at(w, j);

		if (is_plain(r) && !((r->a ^ rec_at(w, i)->a) & ~(u64)REC_TEMPORARY) && stream_at(w, j) != stream_at(w, i))
			return true;
	}
	return false;
}

static void take_other(struct model *m, struct proc *p, struct pen *pen, const struct window *w, u32 i)
{
	const struct rec *r = rec_at(w, i);
	u32 earlies = p->earlies;

	if (is_plain(r))
		take_odd_block(m, p, pen, r, stream_at(w, i), ticks_at(w, i));
	else
		take_extra(m, p, pen, &w->extra[r->w], ticks_at(w, i));
	if (unlikely(p->earlies > earlies) && is_plain(r) && r->a & REC_FREE && freed_twice(w, i))
		p->early[earlies].stream = NULL;        /* anybody's block is meant */
}

static bool is_event(const struct window *w, const struct rec *r)
{
	return !is_plain(r) && w->extra[r->w].kind == EXTRA_EVENT;
}

u32 resolve(struct model *m, const struct window *w, u32 i, u32 end, struct pen *pen)
{
	u64 odd = (m->s.head.large < PLAIN_SIZE_LIMIT ? m->s.head.large : PLAIN_SIZE_LIMIT) << NODE_BITS;

	while (i < end) {
		const struct rec *r = rec_at(w, i);
		struct proc *p = w->image[r->a >> REC_IMAGE_SHIFT]->model;
		u32 from = i;

		if (!p || p->closed || is_event(w, r))
			break;
		pen->several |= pen->first && pen->first != p;
		pen->first = p;
		if (unlikely(p->earlies))
			give_up_old(p, ticks_at(w, i));
		if (likely(!p->earlies)) {
			i = take_plain(p, w, i, end, pen, odd);
			i = take_brief(p, w, i, end, pen);
		}
		if (i == from)
			take_other(m, p, pen, w, i++);
	}
	return i;
}
