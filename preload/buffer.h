/*
 * buffer.h - records go into the chunk of a context: no lock, no malloc, no system call but the flush.
 */
#ifndef BUFFER_H
#define BUFFER_H

#include "context.h"

void buffer_put_slow(struct context *c, u64 kind, u64 t, u64 addr, u64 size, u32 node);
void buffer_next_chunk(struct context *c);
void buffer_begin(struct context *c);                   /* a fresh slot's first chunk */
void buffer_send(struct context *c);                    /* what is unsent goes through the pipe now */
void buffer_event(struct context *c, u32 type, u64 t, const void *fields, u32 field_bytes, const char *text, size_t length);

#define EMIT(c, t, name, fields, text, length)                                                         \
	({                                                                                             \
		struct rec_##name fields_ = fields;                                                    \
		buffer_event(c, EVENT_##name, t, &fields_, sizeof fields_, text, length);              \
	})
#define EMIT_TEXT(c, t, name, text, length) buffer_event(c, EVENT_##name, t, NULL, 0, text, length)
#define FIELDS(...) { __VA_ARGS__ }

static inline bool buffer_has_room(const struct context *c, u32 words)
{
	return USED_UP(c->used) + USED_DOWN(c->used) + words <= CHUNK_ROOM;
}

static inline void buffer_publish(struct context *c, u64 step)
{
	c->used += step;
	__atomic_store_n(&c->chunk->head.used, c->used, __ATOMIC_RELEASE);
}

static inline u64 *buffer_up(struct context *c) { return &c->chunk->word[CHUNK_HEAD_WORDS + USED_UP(c->used)]; }
static inline u64 *buffer_down(struct context *c) { return &c->chunk->word[CHUNK_WORDS - 1 - USED_DOWN(c->used)]; }

/* A block of `size` bytes at addr was born: kind is KIND_alloc or KIND_enter. */
static inline void buffer_alloc(struct context *c, u64 kind, u64 t, u64 addr, u64 size, u32 node)
{
	u64 dt = t - c->last;

	if (unlikely(dt >= PACKED_DT_LIMIT || size >= PACKED_SIZE_LIMIT || (addr & ~PACKED_ADDR_MASK) || !buffer_has_room(c, 2))) {
		buffer_put_slow(c, kind, t, addr, size, node);
		return;
	}
	*buffer_up(c) = kind | addr | dt << PACKED_DT_SHIFT;
	*buffer_down(c) = size << NODE_BITS | node;
	c->last = t;
	buffer_publish(c, USED_STEP(1, 1));
}

/* The block at addr goes: kind is KIND_free or KIND_leave. */
static inline void buffer_free(struct context *c, u64 kind, u64 t, u64 addr)
{
	u64 dt = t - c->last;

	if (unlikely(dt >= PACKED_DT_LIMIT || (addr & ~PACKED_ADDR_MASK) || !buffer_has_room(c, 1))) {
		buffer_put_slow(c, kind, t, addr, 0, 0);
		return;
	}
	*buffer_up(c) = kind | addr | dt << PACKED_DT_SHIFT;
	c->last = t;
	buffer_publish(c, USED_STEP(1, 0));
}

/* Names a frame and all outside of it; returns the number. */
static inline u32 buffer_node(struct context *c, u32 parent, u64 pc)
{
	if (unlikely(!buffer_has_room(c, 2)))
		buffer_next_chunk(c);
	*buffer_up(c) = KIND_node | pc << 3;
	*buffer_down(c) = parent;
	buffer_publish(c, USED_STEP(1, 1));
	return ++c->nodes;
}

#endif
