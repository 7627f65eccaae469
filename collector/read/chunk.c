/*
 * chunk.c - the checks that stand between a program's memory and the model.
 */
#include "chunk.h"
#include <errno.h>

/* One array of fields for each event, ended by an empty name. */
#define PACKED(kind, name, words, meaning)
#define RECORD(type, name, meaning) static const struct field fields_##name[] = {
#define FIELD(name, unit, meaning) { #name, UNIT_##unit, meaning },
#define NO_FIELDS
#define TEXT(meaning)
#define NO_TEXT
#define END_RECORD(name) { 0 } };
#include <mlprof/records.def>
#undef RECORD
#undef FIELD
#undef TEXT
#undef NO_TEXT
#undef END_RECORD

const struct shape shape_of[EVENT_TYPES] = {
#define RECORD(type, rec, says) [type] = { .name = #rec, .meaning = says, .field = fields_##rec, \
	.fields = sizeof(struct rec_##rec) / 8,
#define FIELD(name, unit, meaning)
#define TEXT(says) .text = says,
#define NO_TEXT
#define END_RECORD(name) },
#include <mlprof/records.def>
#undef PACKED
#undef RECORD
#undef FIELD
#undef TEXT
#undef END_RECORD
};

const struct packed_shape packed_of[8] = {
#define PACKED(kind, name, words, meaning) [kind] = { #name, meaning, words },
#define RECORD(type, name, meaning)
#define FIELD(name, unit, meaning)
#define TEXT(meaning)
#define END_RECORD(name)
#include <mlprof/records.def>
#undef PACKED
#undef RECORD
#undef FIELD
#undef NO_FIELDS
#undef TEXT
#undef NO_TEXT
#undef END_RECORD
};

u32 event_words(u64 w)
{
	return shape_of[EVENT_TYPE(w) % EVENT_TYPES].fields + (EVENT_TEXT(w) + 7) / 8;
}

struct event chunk_event(const union chunk *c, u64 w, u32 down)
{
	u32 type = EVENT_TYPE(w);
	const u64 *body = &c->word[CHUNK_WORDS - down];

	return (struct event) {
		.type = type, .text_len = EVENT_TEXT(w),
		.body = body, .text = (const char *)(body + shape_of[type].fields),
	};
}

static bool event_fits(u64 w, u32 room)
{
	u32 type = EVENT_TYPE(w);

	if (type >= EVENT_TYPES || !shape_of[type].name)
		return false;
	if (EVENT_TEXT(w) > (shape_of[type].text ? TEXT_MAX : 0))
		return false;
	return event_words(w) <= room;
}

static void check_exit(const struct rec_exit *r, struct extent *x)
{
	x->exits = true;
	if (r->at_once) {
		x->exit_ticks = x->ticks;
		x->exit_status = (u32)(r->status & 0xff);
	}
}

static int check_event(const union chunk *c, u64 w, u32 room, struct extent *x)
{
	struct event e;

	if (!event_fits(w, room))
		return -EINVAL;
	x->down += event_words(w);
	x->ticks += w >> EVENT_DT_SHIFT;
	x->children |= EVENT_TYPE(w) == EVENT_child;
	e = chunk_event(c, w, x->down);
	if (e.type == EVENT_exit)
		check_exit(EVENT_BODY(&e, exit), x);
	if (e.type == EVENT_at) {
		if (EVENT_BODY(&e, at)->ticks < x->ticks)
			return -EINVAL;
		x->ticks = EVENT_BODY(&e, at)->ticks;
	}
	return x->ticks < TICKS_MAX ? 0 : -EINVAL;
}

/* The plain records from word i on; nearly all are. Returns where the next other one is. */
static u32 check_plain(const u64 *word, u32 i, u32 up, struct extent *x)
{
	u64 ticks = x->ticks;
	u32 born = 0;

	for (; i < up; i++) {
		u64 w = word[i];

		if ((w & 7) - KIND_alloc > KIND_free - KIND_alloc)
			break;
		born += w & 1;
		ticks += w >> PACKED_DT_SHIFT;
	}
	x->down += born;
	x->ticks = ticks;
	return i;
}

static int check_other(const union chunk *c, u64 w, u32 down, struct extent *x)
{
	u32 kind = w & 7;

	if (kind == KIND_event)
		return check_event(c, w, down - x->down, x);
	if (!packed_of[kind].name)
		return -EINVAL;
	x->down += packed_of[kind].words;
	x->nodes += kind == KIND_node;
	x->ticks += kind == KIND_node ? 0 : w >> PACKED_DT_SHIFT;
	return 0;
}

static int check_words(const union chunk *c, u32 up, u32 down, struct extent *x)
{
	const u64 *word = &c->word[CHUNK_HEAD_WORDS];
	u32 i = 0;

	for (;; i++) {
		i = check_plain(word, i, up, x);
		if (x->down > down)
			return -EINVAL;
		if (i == up)
			return 0;
		if (check_other(c, word[i], down, x) || x->down > down)
			return -EINVAL;
	}
}

struct extent chunk_extent(const union chunk *c, u32 up)
{
	struct extent x = { .up = up, .ticks = c->head.t0 };

	check_words(c, up, USED_DOWN(c->head.used), &x);
	x.records = up - x.nodes;
	return x;
}

int chunk_check(const union chunk *c, struct extent *to)
{
	const struct chunk_head *h = &c->head;
	u32 up = USED_UP(h->used), down = USED_DOWN(h->used);

	*to = (struct extent) { .up = up, .ticks = h->t0 };
	if (h->magic != CHUNK_MAGIC || h->version != WIRE_VERSION)
		return -EINVAL;
	if (up > CHUNK_ROOM || down > CHUNK_ROOM - up || h->t0 >= TICKS_MAX / 2)
		return -EINVAL;
	if (check_words(c, up, down, to) || to->down != down)
		return -EINVAL;
	if ((u64)h->node_base + to->nodes > NODE_MASK)
		return -EINVAL;
	to->records = up - to->nodes;
	return 0;
}
