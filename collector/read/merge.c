/*
 * merge.c - streams, their queues, and the windows in which they become one.
 *
 *   stream 0   --x--x----x-|-x---          Every stream is decoded up to the window's end into rec[] and
 *   stream 1   -x----xx----|--x--          key[]; a key holds the time above and the index of its record
 *   stream 2   ---x--------|x----          below, so that sorting moves 8 bytes a record.
 *            base         end
 */
#include "merge.h"
#include "array.h"
#include "sort.h"
#include <errno.h>

enum {
	WINDOW_RECORDS = 8192,                 /* keys and records stay in the L2 cache */
	WINDOW_MAX = 1 << KEY_INDEX_BITS,
	WINDOW_CHUNKS = WINDOW_RECORDS / CHUNK_ROOM,
	IMAGES_MAX = 1 << (64 - REC_IMAGE_SHIFT),
	SLAB_CHUNKS = 16,
};

#define WINDOW_TICKS (1ull << 42)

struct merge {
	struct sink sink;
	struct stream *streams;                 /* by key */
	struct image **image;                   /* by id; NULL: free */
	u32 images, image_room;
	bool some_over;

	struct stream **active;                 /* have something queued; the oldest process first */
	u32 actives, active_room;

	u64 reached;
	u64 large;                              /* << 28 */
	struct merge_counts counts;

	struct rec *rec;
	u64 *key, *other;
	u32 rec_room;
	u32 *start;                             /* first key of each stream's run */
	u32 start_room;
	struct extra *extra;
	u32 extras, extra_room;

	union chunk **free_chunk, **done;       /* done: decoded, but events still point into them */
	u32 free_chunks, free_room, dones, done_room;
	void **slab;
	u32 slabs, slab_room;
	u64 held;
};

/* ---- chunks ------------------------------------------------------------------------- */

static void more_chunks(struct merge *m)
{
	union chunk *slab = must(aligned_alloc(CHUNK_BYTES, SLAB_CHUNKS * sizeof(*slab)));
	u32 i;

	ARRAY_ROOM(m->slab, m->slab_room, m->slabs + 1);
	m->slab[m->slabs++] = slab;
	ARRAY_ROOM(m->free_chunk, m->free_room, m->slabs * SLAB_CHUNKS);
	for (i = 0; i < SLAB_CHUNKS; i++)
		m->free_chunk[m->free_chunks++] = &slab[i];
}

union chunk *merge_chunk(struct merge *m)
{
	if (!m->free_chunks)
		more_chunks(m);
	m->held++;
	return m->free_chunk[--m->free_chunks];
}

void merge_unread(struct merge *m, union chunk *c)
{
	m->held--;
	m->free_chunk[m->free_chunks++] = c;
}

u64 merge_pending_bytes(const struct merge *m)
{
	return m->held * CHUNK_BYTES;
}

/* ---- images and streams -------------------------------------------------------------- */

static struct image *find_image(struct merge *m, u32 pid, u64 born)
{
	u32 i;

	for (i = 0; i < m->images; i++)
		if (m->image[i] && m->image[i]->pid == pid && m->image[i]->born == born)
			return m->image[i];
	return NULL;
}

static struct image *new_image(struct merge *m, u32 pid, u64 born)
{
	struct image *image;
	u32 id = 0;

	while (id < m->images && m->image[id])
		id++;
	if (id == IMAGES_MAX)
		return NULL;
	if (id == m->images) {
		ARRAY_ROOM(m->image, m->image_room, id + 1);
		m->images++;
	}
	image = new_zeroed(1, sizeof(*image));
	*image = (struct image) { .pid = pid, .born = born, .id = id };
	m->image[id] = image;
	return image;
}

struct stream *merge_find(struct merge *m, u32 pid, u64 born, u32 slot)
{
	struct stream_key key = { born, pid, slot };
	struct stream *s;

	HASH_FIND(hh, m->streams, &key, sizeof(key), s);
	return s;
}

struct stream *merge_streams(struct merge *m)
{
	return m->streams;
}

/* Index 0 of the node arrays is "no stack". */
static void init_nodes(struct stream *s)
{
	s->node_room = 16;
	s->pc = new_zeroed(s->node_room, sizeof(*s->pc));
	s->parent = new_zeroed(s->node_room, sizeof(*s->parent));
	s->number = new_zeroed(s->node_room, sizeof(*s->number));
	s->label = new_zeroed(s->node_room, sizeof(*s->label));
	s->label[0] = LABEL_NONE;
	s->nodes = 1;
	ARRAY_ROOM(s->run, s->run_room, 1);
	s->run[s->runs++] = (struct node_run) { 0, 0 };
}

struct stream *merge_stream(struct merge *m, u32 pid, u64 born, u32 slot)
{
	struct stream *s = merge_find(m, pid, born, slot);
	struct image *image;

	if (s)
		return s;
	image = find_image(m, pid, born);
	if (!image)
		image = new_image(m, pid, born);
	if (!image)
		return NULL;
	image->streams++;
	s = new_zeroed(1, sizeof(*s));
	s->key = (struct stream_key) { born, pid, slot };
	s->image = image;
	s->node_next = 1;
	init_nodes(s);
	HASH_ADD(hh, m->streams, key, sizeof(s->key), s);
	return s;
}

static void free_stream(struct merge *m, struct stream *s)
{
	struct image *image = s->image;

	HASH_DEL(m->streams, s);
	free(s->queue);
	free(s->pc);
	free(s->parent);
	free(s->number);
	free(s->label);
	free(s->run);
	free(s);
	if (--image->streams == 0) {
		m->image[image->id] = NULL;
		free(image);
	}
}

static void free_streams_that_are_over(struct merge *m)
{
	struct stream *s, *next;

	if (!m->some_over)
		return;
	m->some_over = false;
	HASH_ITER(hh, m->streams, s, next) {
		if (!s->image->over)
			continue;
		if (s->active)
			m->some_over = true;
		else
			free_stream(m, s);
	}
}

u32 stream_node(const struct stream *s, u32 number)
{
	u32 low = 0, high = s->runs, end, i;

	while (high - low > 1) {
		u32 mid = (low + high) / 2;

		if (s->run[mid].first <= number)
			low = mid;
		else
			high = mid;
	}
	end = low + 1 < s->runs ? s->run[low + 1].at : s->nodes;
	i = number - s->run[low].first;
	return i < end - s->run[low].at ? s->run[low].at + i : 0;
}

static void name_node(struct stream *s, u64 pc, u32 parent)
{
	if (s->nodes == s->node_room) {
		u32 room = s->node_room * 2;

		s->pc = must(realloc(s->pc, room * sizeof(*s->pc)));
		s->parent = must(realloc(s->parent, room * sizeof(*s->parent)));
		s->number = must(realloc(s->number, room * sizeof(*s->number)));
		s->label = must(realloc(s->label, room * sizeof(*s->label)));
		s->node_room = room;
	}
	s->pc[s->nodes] = pc;
	s->parent[s->nodes] = parent;
	s->number[s->nodes] = 0;
	s->label[s->nodes] = LABEL_NONE;
	s->nodes++;
}

/* ---- pushing ------------------------------------------------------------------------- */

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
		m->sink.early(m->sink.to, &e);
	}
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
		if (p->to.down < s->taken.down || p->to.nodes < s->taken.nodes || p->to.ticks < s->taken.ticks)
			return -EINVAL;
		p->from = s->taken;
		return 0;
	}
	if (h->node_base < s->node_next)
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

/* ---- decoding ------------------------------------------------------------------------ */

static const bool frees_first[EVENT_TYPES] = { [EVENT_unmap] = true, [EVENT_gone] = true };

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
	image = find_image(m, (u32)EVENT_BODY(e, died)->pid, EVENT_BODY(e, died)->born);
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
	ARRAY_ROOM(s->run, s->run_room, s->runs + 1);
	s->run[s->runs++] = (struct node_run) { base, s->nodes };
}

struct cursor {
	struct merge *m;
	struct stream *s;
	u64 end;                        /* ticks */
	u32 n, limit;
	u64 base;
};

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
		name_node(s, w >> 3, (u32)chunk->word[CHUNK_WORDS - s->down] & NODE_MASK);
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
	put(c, t, REC_EXTRA, add_extra(c->m, x), s->tie);
	s->ticks = t;
	s->down = down;
	s->up++;
	return true;
}

/*
 * The plain records, without a branch between alloc and free: their mix is random. Stops at the first one
 * that is not plain, lies beyond the window or finds no room.
 */
static void decode_plain(struct cursor *c, const union chunk *chunk, u32 up_end)
{
	struct stream *s = c->s;
	const struct node_run run = s->run[s->runs - 1];
	const u32 *label = s->label + run.at;
	const u32 labels = s->nodes - run.at;
	const u64 image = (u64)s->image->id << REC_IMAGE_SHIFT;
	const u64 large = c->m->large, base = c->base, end = c->end;
	const u64 *p = &chunk->word[CHUNK_HEAD_WORDS + s->up], *p_end = &chunk->word[CHUNK_HEAD_WORDS + up_end];
	const u64 *q = &chunk->word[CHUNK_WORDS - 1 - s->down];
	struct rec *rec = c->m->rec;
	u64 *key = c->m->key;
	u64 ticks = s->ticks, last_alloc = s->last_alloc, tie = s->tie;
	u32 n = c->n, limit = c->limit;

	if (p_end - p > limit - n)
		p_end = p + (limit - n);
	for (; p < p_end; p++) {
		u64 w = *p, dt = w >> PACKED_DT_SHIFT, kind = w & 7, addr = w & PACKED_ADDR_MASK;
		u64 born = -(kind & 1), body = *q & born;
		u32 node = (u32)(body & NODE_MASK) - run.first, named;

		if (unlikely(kind > KIND_free || ticks + dt >= end))
			break;
		named = node < labels ? label[node] : LABEL_NONE;
		if (unlikely((kind & 1) && (named == LABEL_NONE || body >= large)))
			break;
		ticks += dt;
		tie = (kind & 1) | (tie & (dt == 0));
		rec[n].a = addr | image | (kind + ((addr == last_alloc) & (kind >> 1)));
		rec[n].w = ((body & ~(u64)NODE_MASK) | named) & born;
		key[n] = (ticks - base) << KEY_TIME_SHIFT | tie << KEY_INDEX_BITS | n;
		last_alloc = addr & born;
		q -= kind & 1;
		n++;
	}
	s->up = p - &chunk->word[CHUNK_HEAD_WORDS];
	s->down = &chunk->word[CHUNK_WORDS - 1] - q;
	s->ticks = ticks;
	s->last_alloc = last_alloc;
	s->tie = tie;
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

/* A piece's last ticks are checked before it is begun, so that windows need not open it to find nothing. */
static void decode_stream(struct cursor *c)
{
	struct stream *s = c->s;

	while (s->head != s->tail) {
		const struct piece *p = &s->queue[s->head & (s->room - 1)];

		if (!s->open && p->t0 >= c->end)
			return;
		if (!decode_piece(c, p))
			return;
		finish_piece(c->m, s);
	}
}

/* ---- windows ------------------------------------------------------------------------- */

static const struct piece *piece_at(const struct stream *s, u32 i)
{
	return s->tail - s->head > i ? &s->queue[(s->head + i) & (s->room - 1)] : NULL;
}

static u64 head_ticks(const struct stream *s)
{
	return s->open ? s->ticks : piece_at(s, 0)->t0;
}

static u64 first_ticks(const struct merge *m)
{
	u64 first = UINT64_MAX;
	u32 i;

	for (i = 0; i < m->actives; i++)
		if (head_ticks(m->active[i]) < first)
			first = head_ticks(m->active[i]);
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
	m->key = must(realloc(m->key, records * sizeof(*m->key)));
	m->other = must(realloc(m->other, records * sizeof(*m->other)));
}

/* Decodes all active streams; start[] gets where each one's run begins. Returns the number of runs. */
static u32 decode_all(struct merge *m, struct cursor *c, u32 share)
{
	u32 i, runs = 0;

	ARRAY_ROOM(m->start, m->start_room, m->actives + 1);
	for (i = 0; i < m->actives; i++) {
		u32 n = c->n;

		c->s = m->active[i];
		c->limit = n + share;
		decode_stream(c);
		if (c->n > n)
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
	w.key = sort_runs(m->key, m->other, m->start, runs, KEY_TIME_SHIFT);
	w.rec = m->rec;
	w.count = c.n;
	w.extra = m->extra;
	if (w.count)
		m->sink.window(m->sink.to, &w);
	drop_inactive(m);
	cut_short = c.n && (alone || share < most) && first_ticks(m) < c.end;
	release_done(m);
	free_streams_that_are_over(m);
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
	free_streams_that_are_over(m);
}

/* ---- the whole ----------------------------------------------------------------------- */

struct merge *merge_new(struct sink sink)
{
	struct merge *m = new_zeroed(1, sizeof(*m));

	m->sink = sink;
	m->large = UINT64_MAX;
	return m;
}

void merge_large(struct merge *m, u64 size)
{
	m->large = size < PACKED_SIZE_LIMIT ? size << NODE_BITS : UINT64_MAX;
}

u64 merge_reached(const struct merge *m)
{
	return m->reached;
}

struct merge_counts merge_counts(const struct merge *m)
{
	return m->counts;
}

void merge_free(struct merge *m)
{
	struct stream *s, *next;

	if (!m)
		return;
	HASH_ITER(hh, m->streams, s, next)
		free_stream(m, s);
	while (m->slabs)
		free(m->slab[--m->slabs]);
	free(m->slab);
	free(m->free_chunk);
	free(m->done);
	free(m->image);
	free(m->active);
	free(m->rec);
	free(m->key);
	free(m->other);
	free(m->start);
	free(m->extra);
	free(m);
}
