/*
 * push.c - a chunk is checked, cut down to what is new of it, and queued.
 */
#include "merge_inside.h"
#include <errno.h>

static bool goes_before(const struct stream_key *a, const struct stream_key *b)
{
	if (a->born != b->born)
		return a->born < b->born;
	return a->pid != b->pid ? a->pid < b->pid : a->slot < b->slot;
}

static void activate(struct merge *m, struct stream *s)
{
	u32 i = m->actives++;

	ARRAY_ROOM(m->active, m->active_room, m->actives);
	for (; i > 0 && goes_before(&s->key, &m->active[i - 1]->key); i--)
		m->active[i] = m->active[i - 1];
	m->active[i] = s;
	s->active = true;
}

static void enqueue(struct merge *m, struct stream *s, struct piece p)
{
	u32 i, used = s->tail - s->head;

	if (used == s->room) {
		u32 room = s->room ? s->room * 2 : 16;
		struct piece *queue = new_zeroed(room, sizeof(*queue));

		for (i = 0; i < used; i++)
			queue[i] = s->queue[(s->head + i) & (s->room - 1)];
		free(s->queue);
		s->queue = queue;
		s->room = room;
		s->head = 0;
		s->tail = used;
	}
	s->queue[s->tail++ & (s->room - 1)] = p;
	if (!s->active)
		activate(m, s);
}

static u64 *down_word(union chunk *c, u32 down)
{
	return &c->word[CHUNK_WORDS - down];
}

/* Records of a piece that are before `floor` are moved there; returns how many. */
static u32 lift(struct piece *p, u64 floor)
{
	u64 *word = &p->chunk->word[CHUNK_HEAD_WORDS];
	u64 t = p->t0;
	u32 i, down = p->from.down, moved = 0;

	for (i = p->from.up; i < p->to.up; i++) {
		u64 w = word[i];
		u32 kind = w & 7, shift = kind == KIND_event ? EVENT_DT_SHIFT : PACKED_DT_SHIFT;

		down += kind == KIND_event ? event_words(w) : packed_of[kind].words;
		if (kind == KIND_node)
			continue;
		t += w >> shift;
		if (kind == KIND_event && EVENT_TYPE(w) == EVENT_at && *down_word(p->chunk, down) > t)
			t = *down_word(p->chunk, down);
		w &= (1ull << shift) - 1;
		word[i] = w | (t > floor ? t - floor : 0) << shift;
		if (kind == KIND_event && EVENT_TYPE(w) == EVENT_at) {
			word[i] = w;
			*down_word(p->chunk, down) = t > floor ? t : floor;
		}
		if (t >= floor)
			break;
		moved++;
	}
	p->t0 = floor;
	return moved;
}

void merge_large(struct merge *m, u64 size)
{
	if (!size)              /* the decoder takes what is below for a free or a plain block */
		size = 1;
	m->large = (size < PLAIN_SIZE_LIMIT ? size : PLAIN_SIZE_LIMIT) << NODE_BITS;
}

static void tell_early(struct merge *m, const struct piece *p)
{
	const u64 *word = &p->chunk->word[CHUNK_HEAD_WORDS];
	u32 i, down = p->from.down;

	for (i = p->from.up; i < p->to.up; i++) {
		u64 w = word[i];
		struct event e;

		down += (w & 7) == KIND_event ? event_words(w) : packed_of[w & 7].words;
		if ((w & 7) != KIND_event)
			continue;
		e = chunk_event(p->chunk, w, down);
		if (e.type == EVENT_session)
			merge_large(m, EVENT_BODY(&e, session)->large);
		m->sink.early(m->sink.to, &e);
	}
}

/* What was taken of a chunk before must still be what it begins with: the decoder goes on behind it. */
static bool same_beginning(const struct stream *s, const union chunk *c)
{
	struct extent x = chunk_extent(c, s->taken.up);

	return x.down == s->taken.down && x.nodes == s->taken.nodes && x.ticks == s->taken.ticks &&
	       c->head.node_base + x.nodes == s->node_next;
}

/* What of the chunk is new. -EINVAL: it contradicts what came before. */
static int cut(struct merge *m, struct stream *s, struct piece *p)
{
	const struct chunk_head *h = &p->chunk->head;

	p->from = (struct extent) { .ticks = h->t0 };
	if (s->any && h->seq < s->seen)
		return 1;
	if (s->any && h->seq == s->seen) {
		if (p->to.up <= s->taken.up)
			return 1;
		if (!same_beginning(s, p->chunk))
			return -EINVAL;
		p->from = s->taken;
		return 0;
	}
	if (h->node_base < s->node_next && !(h->node_base == 1 && s->node_next > NODE_RESTART))
		return -EINVAL;
	m->counts.lost += h->lost;
	s->lost += h->lost;
	if (!h->lost && h->seq > (s->any ? s->seen + 1 : 0))
		m->counts.lost++;
	return 0;
}

static void accept(struct merge *m, struct stream *s, struct piece p)
{
	bool fresh = !s->any;
	u64 floor = s->last > m->reached ? s->last : m->reached;
	u32 late;

	s->any = true;
	s->seen = p.chunk->head.seq;
	s->taken = p.to;
	s->node_next = p.chunk->head.node_base + p.to.nodes;
	s->image->exiting |= p.to.exits;
	p.t0 = p.from.ticks;
	if (p.t0 < floor) {
		late = lift(&p, floor);
		if (!fresh)             /* nobody could have known of a new stream before its first chunk came */
			m->counts.late += floor == m->reached ? late : 0;
		if (p.to.ticks < floor)
			p.to.ticks = floor;
	}
	s->last = p.to.ticks;
	m->counts.records += p.to.records - p.from.records;
	if (!s->key.pid)
		tell_early(m, &p);
	enqueue(m, s, p);
}

struct stream *merge_push(struct merge *m, union chunk *c)
{
	struct piece p = { .chunk = c };
	struct stream *s = NULL;
	int new = chunk_check(c, &p.to);

	if (!new)
		s = merge_stream(m, c->head.pid, c->head.born, c->head.slot);
	if (s)
		new = cut(m, s, &p);
	if (s && !new) {
		accept(m, s, p);
		return s;
	}
	m->counts.bad_chunks += new < 0 || !s;
	merge_unread(m, c);
	return new < 0 ? NULL : s;
}
