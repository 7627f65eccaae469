/*
 * own.c - see own.h.
 */
#include "own.h"
#include <string.h>

static void begin_chunk(struct own *o, u32 slot, u64 seq)
{
	memset(&o->chunk, 0, sizeof(o->chunk));
	o->chunk.head = (struct chunk_head) {
		.magic = CHUNK_MAGIC, .version = WIRE_VERSION, .slot = slot, .seq = seq, .t0 = o->last, .node_base = 1,
	};
	o->pushed = o->kept = 0;
}

void own_init(struct own *o, u32 slot, u64 ticks, void (*full)(void *to, struct own *o), void *to)
{
	o->last = ticks;
	o->full = full;
	o->to = to;
	begin_chunk(o, slot, 0);
}

static u32 room(const struct own *o)
{
	return CHUNK_ROOM - USED_UP(o->chunk.head.used) - USED_DOWN(o->chunk.head.used);
}

static void put(struct own *o, u64 ticks, u32 type, const void *fields, size_t bytes, const char *text, size_t len)
{
	u64 used = o->chunk.head.used;
	u32 words = (u32)(bytes + len + 7) / 8;
	u64 *body;

	if (room(o) < words + 1) {
		o->full(o->to, o);
		begin_chunk(o, o->chunk.head.slot, o->chunk.head.seq + 1);
		put(o, ticks, type, fields, bytes, text, len);
		return;
	}
	body = &o->chunk.word[CHUNK_WORDS - USED_DOWN(used) - words];
	if (bytes)
		memcpy(body, fields, bytes);
	if (len)
		memcpy((char *)body + bytes, text, len);
	o->chunk.word[CHUNK_HEAD_WORDS + USED_UP(used)] =
		KIND_event | (u64)type << 3 | (u64)len << 11 | (ticks - o->last) << EVENT_DT_SHIFT;
	o->last = ticks;
	o->chunk.head.used = used + USED_STEP(1, words);
}

void own_event(struct own *o, u64 ticks, u32 type, const void *fields, size_t bytes, const char *text, size_t len)
{
	if (ticks < o->last)
		ticks = o->last;
	if (len > TEXT_MAX)
		len = TEXT_MAX;
	if (ticks - o->last >= EVENT_DT_LIMIT) {
		put(o, o->last, EVENT_at, &(struct rec_at) { ticks }, sizeof(struct rec_at), NULL, 0);
		o->last = ticks;
	}
	put(o, ticks, type, fields, bytes, text, len);
}
