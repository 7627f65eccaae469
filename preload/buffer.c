/*
 * buffer.c - the rare half of writing records: long forms, full chunks, sending.
 *
 *   slot->ring[16]:   sent .. seq    what was not sent yet, the last one being filled
 *
 * When the ring is full all of it goes with one write: half the cost of sending chunk by chunk. What is
 * never sent is taken by the collector from shared memory.
 */
#include "buffer.h"
#include "pipe.h"
#include "stack.h"
#include <string.h>

static union chunk *ring(struct context *c, u64 seq)
{
	return &c->slot->ring[seq % RING_CHUNKS];
}

/* The collector may look at a chunk at any time: it is empty before it gets its new number. */
static void begin_chunk(struct context *c, u64 seq)
{
	union chunk *k = ring(c, seq);

	__atomic_store_n(&k->head.used, 0, __ATOMIC_RELEASE);
	k->head = (struct chunk_head){
		.magic = CHUNK_MAGIC, .version = WIRE_VERSION, .pid = process_pid(), .slot = c->index, .born = process_born(),
		.seq = seq, .t0 = c->last, .node_base = c->nodes + 1, .lost = c->lost,
	};
	c->lost = 0;
	c->chunk = k;
	c->used = 0;
	__atomic_store_n(&c->slot->head.seq, seq, __ATOMIC_RELEASE);
}

void buffer_begin(struct context *c)
{
	c->slot->head.sent = 0;
	begin_chunk(c, 0);
}

static void count_dropped(struct context *c, u64 from, u64 to)
{
	for (; from < to; from++)
		c->lost += USED_UP(ring(c, from)->head.used);
	c->slot->head.lost += c->lost;
}

/* Sends the chunks below `end`, in at most two runs, because the ring wraps. */
static void send_until(struct context *c, u64 end)
{
	struct slot_head *s = &c->slot->head;

	while (s->sent < end) {
		u64 run = RING_CHUNKS - s->sent % RING_CHUNKS;
		u32 want = end - s->sent < run ? (u32)(end - s->sent) : (u32)run;
		u32 sent = pipe_send(ring(c, s->sent), want, &s->waited_ticks);

		if (sent < want) {
			count_dropped(c, s->sent + sent, end);
			__atomic_store_n(&s->sent, end, __ATOMIC_RELEASE);
			stack_forget_later(c);
			return;
		}
		__atomic_store_n(&s->sent, s->sent + want, __ATOMIC_RELEASE);
	}
}

void buffer_next_chunk(struct context *c)
{
	u64 next = c->slot->head.seq + 1;

	if (next - c->slot->head.sent >= RING_CHUNKS || next % RING_CHUNKS == 0)
		send_until(c, next);
	begin_chunk(c, next);
}

void buffer_send(struct context *c)
{
	u64 next = c->slot->head.seq + 1;

	send_until(c, next);
	begin_chunk(c, next);
}

static void set_time(struct context *c, u64 t)
{
	EMIT(c, c->last, at, FIELDS(.ticks = t), NULL, 0);
	c->last = t;
}

void buffer_event(struct context *c, u32 type, u64 t, const void *fields, u32 field_bytes, const char *text, size_t length)
{
	u32 words;
	u64 *body;

	if (length > TEXT_MAX)
		length = TEXT_MAX;
	words = (u32)(field_bytes + length + 7) / 8;
	if (t < c->last)                /* stamps of one stream never go back; TSC noise between cores might */
		t = c->last;
	if (t - c->last >= EVENT_DT_LIMIT)
		set_time(c, t);
	if (!buffer_has_room(c, words + 1))
		buffer_next_chunk(c);
	body = buffer_down(c) + 1 - words;
	if (words)
		body[words - 1] = 0;
	if (field_bytes)
		memcpy(body, fields, field_bytes);
	if (length)
		memcpy((char *)body + field_bytes, text, length);
	*buffer_up(c) = KIND_event | (u64)type << 3 | (u64)length << 11 | (t - c->last) << EVENT_DT_SHIFT;
	c->last = t;
	buffer_publish(c, USED_STEP(1, words));
}

static void put_long(struct context *c, u64 kind, u64 t, u64 addr, u64 size, u32 node)
{
	if (kind == KIND_alloc || kind == KIND_enter)
		EMIT(c, t, block, FIELDS(.addr = addr, .size = size, .node = node, .moved = kind == KIND_enter), NULL, 0);
	else
		EMIT(c, t, gone, FIELDS(.addr = addr, .moved = kind == KIND_leave), NULL, 0);
}

void buffer_put_slow(struct context *c, u64 kind, u64 t, u64 addr, u64 size, u32 node)
{
	if (t < c->last)
		t = c->last;
	if (size >= PACKED_SIZE_LIMIT || (addr & ~PACKED_ADDR_MASK)) {
		put_long(c, kind, t, addr, size, node);
		return;
	}
	if (!buffer_has_room(c, 4))
		buffer_next_chunk(c);
	if (t - c->last >= PACKED_DT_LIMIT)
		set_time(c, t);
	if (kind == KIND_alloc || kind == KIND_enter)
		buffer_alloc(c, kind, t, addr, size, node);
	else
		buffer_free(c, kind, t, addr);
}
