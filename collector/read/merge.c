/*
 * merge.c - the windows in which many streams become one.
 *
 *   stream 0   --x--x----x-|-x---          Every stream is decoded up to the window's end into rec[] and
 *   stream 1   -x----xx----|--x--          key[]; a key holds the time above and the index of its record
 *   stream 2   ---x--------|x----          below, so that sorting moves 8 bytes a record.
 *            base         end
 */
#include "merge_inside.h"
#include "sort.h"

enum {
	WINDOW_RECORDS = 8192,                  /* keys and records stay in the L2 cache */
	WINDOW_MAX = 1 << KEY_INDEX_BITS,
	WINDOW_CHUNKS = WINDOW_RECORDS / CHUNK_ROOM,
};

#define WINDOW_TICKS (1ull << 42)

/* No record that waits is older. */
static u64 first_ticks(const struct merge *m)
{
	u64 first = UINT64_MAX;
	u32 i;

	for (i = 0; i < m->actives; i++) {
		u64 next = decode_next_ticks(m->active[i]);

		first = next < first ? next : first;
	}
	return first;
}

/* With several streams the window must end before any has more than its share in it. */
static u64 shared_end(const struct merge *m, u64 base, u64 end)
{
	u32 ahead = WINDOW_CHUNKS / m->actives, i;

	for (i = 0; i < m->actives; i++) {
		const struct piece *p = piece_at(m->active[i], ahead ? ahead : 1);

		if (p && p->t0 < end)
			end = p->t0;
	}
	return end > base ? end : base + 1;
}

/* No more records than this lie before `end`. */
static u64 most_records(const struct merge *m, u64 end)
{
	u64 most = 0;
	u32 i, j;

	for (i = 0; i < m->actives; i++) {
		const struct piece *p;

		for (j = 0; (p = piece_at(m->active[i], j)) && (j == 0 || p->t0 < end); j++)
			most += p->to.up;
	}
	return most;
}

static u64 window_end(const struct merge *m, u64 base, u64 before)
{
	u64 end = before - base > WINDOW_TICKS ? base + WINDOW_TICKS : before;

	if (m->actives == 1)
		return end;
	end = shared_end(m, base, end);
	while (end - base > 1 && most_records(m, end) > WINDOW_MAX)
		end = base + (end - base) / 2;
	return end;
}

static void room_for(struct merge *m, u32 records)
{
	if (records <= m->rec_room)
		return;
	m->rec_room = records;
	m->rec = must(realloc(m->rec, records * sizeof(*m->rec)));
	m->key = must(realloc(m->key, (records + 1) * sizeof(*m->key)));
	m->other = must(realloc(m->other, (records + 1) * sizeof(*m->other)));
}

/* Decodes all active streams; start[] gets where each one's run begins. Returns the number of runs. */
static u32 decode_all(struct merge *m, struct cursor *c, u32 share)
{
	u32 i, runs = 0;

	ARRAY_ROOM(m->start, m->start_room, m->actives + 1);
	ARRAY_ROOM(m->run, m->run_room, m->actives + 1);
	for (i = 0; i < m->actives; i++) {
		u32 n = c->n;

		c->s = m->active[i];
		c->limit = n + share;
		decode_stream(c);
		if (c->n == n)
			continue;
		m->run[runs] = (struct run) { c->n, c->s };
		m->start[runs++] = n;
	}
	m->start[runs] = c->n;
	return runs;
}

static void drop_inactive(struct merge *m)
{
	u32 i, kept = 0;

	for (i = 0; i < m->actives; i++) {
		struct stream *s = m->active[i];

		s->active = s->head != s->tail;
		if (s->active)
			m->active[kept++] = s;
	}
	m->actives = kept;
}

static void release_done(struct merge *m)
{
	while (m->dones)
		merge_unread(m, m->done[--m->dones]);
}

/* The sink may look one record ahead. */
static const u64 *end_keys(u64 *key, u32 n)
{
	if (n)
		key[n] = key[n - 1];
	return key;
}

/* One window. Returns where the next one begins. */
static u64 advance_once(struct merge *m, u64 base, u64 before)
{
	struct cursor c = { .m = m, .base = base, .end = window_end(m, base, before) };
	struct window w = { .base = base, .image = m->image };
	bool alone = m->actives == 1;
	u64 most = alone ? WINDOW_RECORDS : most_records(m, c.end);
	u32 share, runs;
	bool cut_short;

	if (most > WINDOW_MAX)
		most = WINDOW_MAX;
	room_for(m, (u32)most);
	share = alone || most < WINDOW_MAX ? (u32)most : WINDOW_MAX / m->actives;
	m->extras = 0;
	runs = decode_all(m, &c, share ? share : 1);
	w.key = end_keys(sort_runs(m->key, m->other, m->start, runs, KEY_TIME_SHIFT), c.n);
	w.rec = m->rec;
	w.count = c.n;
	w.extra = m->extra;
	w.run = m->run;
	if (w.count)
		m->sink.window(m->sink.to, &w);
	drop_inactive(m);
	cut_short = c.n && (alone || share < most) && first_ticks(m) < c.end;
	release_done(m);
	streams_free_over(m);
	return cut_short ? base : c.end;
}

void merge_advance(struct merge *m, u64 before)
{
	u64 base = m->reached;

	while (m->actives && base < before) {
		u64 first = first_ticks(m);

		if (first > base)
			base = first;
		if (base >= before)
			break;
		base = advance_once(m, base, before);
	}
	if (before > m->reached)
		m->reached = before;
	streams_free_over(m);
}

/* ---- the whole ----------------------------------------------------------------------- */

struct merge *merge_new(struct sink sink)
{
	struct merge *m = new_zeroed(1, sizeof(*m));

	m->sink = sink;
	merge_large(m, UINT64_MAX);
	return m;
}

u64 merge_reached(const struct merge *m)
{
	return m->reached;
}

struct intake_counts merge_counts(const struct merge *m)
{
	return m->counts;
}

void merge_free(struct merge *m)
{
	if (!m)
		return;
	streams_release(m);
	free(m->run);
	free(m->done);
	free(m->active);
	free(m->rec);
	free(m->key);
	free(m->other);
	free(m->start);
	free(m->extra);
	free(m);
}
