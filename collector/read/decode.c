/*
 * decode.c - queued chunks become records, up to the end of a window.
 *
 * All was checked when the chunk was pushed, so nothing is checked here.
 */
#include "merge_inside.h"

#define PLAIN_MASK (PACKED_ADDR_MASK | 7)

static_assert(KIND_alloc == 1 && KIND_free == 2, "decode_plain() counts with them");

/* These do not hold back a free that follows them at the same time; `at` is no more than a time. */
static const bool frees_first[EVENT_TYPES] = { [EVENT_unmap] = true, [EVENT_gone] = true, [EVENT_at] = true };

/* A free right after an alloc makes that one temporary; other events may lie between, these may not. */
static const bool between[EVENT_TYPES] = {
	[EVENT_map] = true, [EVENT_unmap] = true, [EVENT_protect] = true, [EVENT_remap] = true, [EVENT_gone] = true,
	[EVENT_thread] = true,
};

/* An event that is a block's birth or death becomes what it is; all else stays an event. */
static struct extra extra_of_event(struct stream *s, struct event e)
{
	struct extra x = { .stream = s, .kind = EXTRA_EVENT, .event = e };

	if (e.type == EVENT_block) {
		x.kind = EVENT_BODY(&e, block)->moved ? EXTRA_ENTER : EXTRA_ALLOC;
		x.addr = EVENT_BODY(&e, block)->addr;
		x.size = EVENT_BODY(&e, block)->size;
		x.node = EVENT_BODY(&e, block)->node & NODE_MASK;
	} else if (e.type == EVENT_gone) {
		x.kind = EVENT_BODY(&e, gone)->moved ? EXTRA_LEAVE : EXTRA_FREE;
		x.addr = EVENT_BODY(&e, gone)->addr;
	}
	return x;
}

static u32 add_extra(struct merge *m, struct extra x)
{
	ARRAY_ROOM(m->extra, m->extra_room, m->extras + 1);
	m->extra[m->extras] = x;
	return m->extras++;
}

static void note_death(struct merge *m, const struct stream *s, const struct event *e)
{
	struct image *image;

	if (s->key.pid || e->type != EVENT_died)
		return;
	image = image_find(m, (u32)EVENT_BODY(e, died)->pid, EVENT_BODY(e, died)->born);
	if (image)
		image->over = m->some_over = true;
}

static void finish_piece(struct merge *m, struct stream *s)
{
	ARRAY_ROOM(m->done, m->done_room, m->dones + 1);
	m->done[m->dones++] = s->queue[s->head++ & (s->room - 1)].chunk;
	s->open = false;
}

/* Node numbers of a chunk follow those of the chunk before, unless something was lost between. */
static void begin_piece(struct stream *s, const struct piece *p)
{
	u32 base = p->chunk->head.node_base + p->from.nodes;
	struct node_run *run = &s->run[s->runs - 1];

	s->open = true;
	s->up = p->from.up;
	s->down = p->from.down;
	s->ticks = p->t0;
	if (!p->to.nodes || base - run->first == s->nodes - run->at)
		return;
	if (base < run->first)
		s->restart = s->runs;
	ARRAY_ROOM(s->run, s->run_room, s->runs + 1);
	s->run[s->runs++] = (struct node_run) { base, s->nodes };
}

static void put(struct cursor *c, u64 t, u64 a, u64 w, u32 class)
{
	c->m->rec[c->n] = (struct rec) { a | (u64)c->s->image->id << REC_IMAGE_SHIFT, w };
	c->m->key[c->n] = (t - c->base) << KEY_TIME_SHIFT | (u64)class << KEY_INDEX_BITS | c->n;
	c->n++;
}

static u64 event_ticks(const union chunk *c, u64 w, u32 down, u64 t)
{
	t += w >> EVENT_DT_SHIFT;
	if (EVENT_TYPE(w) == EVENT_at) {
		u64 to = c->word[CHUNK_WORDS - down];

		return to > t ? to : t;
	}
	return t;
}

/* A record that is neither a plain alloc nor a plain free. False: it lies beyond the window. */
static bool decode_rare(struct cursor *c, const union chunk *chunk, u64 w)
{
	struct stream *s = c->s;
	u32 kind = w & 7;
	struct extra x = { .stream = s, .addr = w & PACKED_ADDR_MASK };
	u64 t = s->ticks + (w >> PACKED_DT_SHIFT), body;
	u32 down = s->down, class;

	if (kind == KIND_node) {
		s->down++;
		stream_name_node(s, w >> 3, (u32)chunk->word[CHUNK_WORDS - s->down] & NODE_MASK);
		s->up++;
		return true;
	}
	if (kind == KIND_event) {
		down += event_words(w);
		t = event_ticks(chunk, w, down, s->ticks);
		if (t >= c->end)
			return false;
		x = extra_of_event(s, chunk_event(chunk, w, down));
		x.event.ticks = t;
		note_death(c->m, s, &x.event);
		if (x.event.type == EVENT_unmapped_code)
			stream_name_afresh(s);
		class = !frees_first[x.event.type];
	} else {
		if (t >= c->end)
			return false;
		class = kind == KIND_alloc || kind == KIND_enter;
		down += packed_of[kind].words;
		body = class ? chunk->word[CHUNK_WORDS - down] : 0;
		x.kind = kind == KIND_alloc ? EXTRA_ALLOC : kind == KIND_enter ? EXTRA_ENTER : EXTRA_LEAVE;
		x.node = (u32)body & NODE_MASK;
		x.size = body >> NODE_BITS;
	}
	s->tie = class | (s->tie & (t == s->ticks));
	if (x.kind == EXTRA_ALLOC || x.kind == EXTRA_ENTER)
		s->last_alloc = x.addr;
	else if (x.kind != EXTRA_EVENT || between[x.event.type])
		s->last_alloc = 0;
	put(c, t, 0, add_extra(c->m, x), s->tie);
	s->ticks = t;
	s->down = down;
	s->up++;
	return true;
}

/*
 * The plain records, without a branch between alloc and free: their mix is random. Stops at the first one
 * that is not plain, lies beyond the window or finds no room. Times are doubled here, to leave a bit for what comes
 * first at the same time. Not inlined: it needs every register.
 */
static __attribute__((noinline)) void decode_plain(struct cursor *c, const union chunk *chunk, u32 up_end)
{
	struct stream *s = c->s;
	const struct node_run run = s->run[s->runs - 1];
	const i32 *label = (const i32 *)s->label + run.at;              /* LABEL_NONE is -1, and ends it */
	const u32 labels = s->nodes - run.at, limit = c->limit;
	const u64 image = (u64)s->image->id << REC_IMAGE_SHIFT, large = c->m->large;
	const u64 *p = &chunk->word[CHUNK_HEAD_WORDS + s->up], *p_end = &chunk->word[CHUNK_HEAD_WORDS + up_end];
	const u64 *q = &chunk->word[CHUNK_WORDS - 1 - s->down];
	const i64 end = (i64)(c->end - c->base) * 2;
	i64 now = (i64)(s->ticks - c->base) * 2, order = now + s->tie;
	u64 brief = s->last_alloc | KIND_free;                          /* the word that would make the last block temporary */
	struct rec *rec = c->m->rec;
	u64 *key = c->m->key;
	u32 n = c->n;

	if (p_end - p > limit - n)
		p_end = p + (limit - n);
	for (; p < p_end; p++) {
		u64 w = *p, born = w & 1, body = *q, x = w & PLAIN_MASK;
		u32 node = (u32)(body & NODE_MASK) - run.first;
		i64 t = now + (i64)(w >> PACKED_DT_SHIFT) * 2;

		node = node < labels ? node : labels;
		body = ((body & ~(u64)NODE_MASK) | (u64)(i64)label[node]) & -born;
		if (unlikely((w & 7) > KIND_free || t >= end || body >= large))
			break;
		rec[n].a = (x + REC_PLAIN - KIND_alloc) | image | (x == brief) * REC_TEMPORARY;
		rec[n].w = body;
		brief = x + KIND_free - KIND_alloc;
		now = t;
		order = t + (i64)born > order ? t + (i64)born : order;
		key[n] = (u64)order << KEY_INDEX_BITS | n;
		q -= born;
		n++;
	}
	if (n > c->n)
		s->last_alloc = p[-1] & KIND_alloc ? p[-1] & PACKED_ADDR_MASK : 0;
	s->up = p - &chunk->word[CHUNK_HEAD_WORDS];
	s->down = &chunk->word[CHUNK_WORDS - 1] - q;
	s->ticks = c->base + (u64)(now >> 1);
	s->tie = order & 1;
	c->n = n;
}

/* False: the window's end or the limit was met inside the piece. */
static bool decode_piece(struct cursor *c, const struct piece *p)
{
	struct stream *s = c->s;

	if (!s->open)
		begin_piece(s, p);
	while (s->up < p->to.up) {
		decode_plain(c, p->chunk, p->to.up);
		if (s->up == p->to.up)
			break;
		if (c->n == c->limit || !decode_rare(c, p->chunk, p->chunk->word[CHUNK_HEAD_WORDS + s->up]))
			return false;
	}
	return true;
}

/* When the next record of a stream that has something queued happened. */
u64 decode_next_ticks(const struct stream *s)
{
	const struct piece *p = piece_at(s, 0);
	u32 up = s->open ? s->up : p->from.up, down = s->open ? s->down : p->from.down;

	for (; up < p->to.up; up++) {
		u64 w = p->chunk->word[CHUNK_HEAD_WORDS + up], t = s->open ? s->ticks : p->t0;

		if ((w & 7) == KIND_event)
			return event_ticks(p->chunk, w, down + event_words(w), t);
		if ((w & 7) != KIND_node)
			return t + (w >> PACKED_DT_SHIFT);
		down++;
	}
	return p->to.ticks;
}

/* A piece's last ticks are checked before it is begun, so that windows need not open it to find nothing. */
void decode_stream(struct cursor *c)
{
	struct stream *s = c->s;

	if (unlikely(s->afresh.at))             /* said in a window that is over */
		stream_forget_nodes(s);
	while (s->head != s->tail) {
		const struct piece *p = &s->queue[s->head & (s->room - 1)];

		if (!s->open && p->t0 >= c->end)
			return;
		if (!decode_piece(c, p))
			return;
		finish_piece(c->m, s);
	}
}
