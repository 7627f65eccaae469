/*
 * gen.h - makes chunks as a program would, for tests that need no program.
 */
#ifndef GEN_H
#define GEN_H

#include <mlprof/wire.h>
#include <stdlib.h>
#include <string.h>

struct gen {
	union chunk chunk;
	u64 last;
	u32 nodes;
	void (*send)(void *to, const union chunk *c);
	void *to;
};

static inline void gen_begin(struct gen *g, u64 seq)
{
	struct chunk_head h = g->chunk.head;

	memset(&g->chunk, 0, sizeof(g->chunk));
	g->chunk.head = (struct chunk_head) {
		.magic = CHUNK_MAGIC, .version = WIRE_VERSION, .pid = h.pid, .slot = h.slot, .born = h.born,
		.seq = seq, .t0 = g->last, .node_base = g->nodes + 1,
	};
}

static inline void gen_init(struct gen *g, u32 pid, u64 born, u32 slot, void (*send)(void *, const union chunk *), void *to)
{
	*g = (struct gen) { .last = born, .send = send, .to = to };
	g->chunk.head = (struct chunk_head) { .pid = pid, .slot = slot, .born = born };
	gen_begin(g, 0);
}

static inline void gen_flush(struct gen *g)
{
	if (!g->chunk.head.used)
		return;
	g->send(g->to, &g->chunk);
	gen_begin(g, g->chunk.head.seq + 1);
}

static inline u64 *gen_put(struct gen *g, u64 word, u32 words)
{
	u32 up = USED_UP(g->chunk.head.used), down = USED_DOWN(g->chunk.head.used);

	if (up + down + words + 1 > CHUNK_ROOM) {
		gen_flush(g);
		up = down = 0;
	}
	g->chunk.word[CHUNK_HEAD_WORDS + up] = word;
	g->chunk.head.used += USED_STEP(1, words);
	return &g->chunk.word[CHUNK_WORDS - down - words];
}

/* Time jumps further than the next record could say. */
static inline void gen_jump(struct gen *g, u64 t)
{
	*gen_put(g, KIND_event | EVENT_at << 3, 1) = t;
	g->last = t;
}

static inline void gen_event(struct gen *g, u64 t, u32 type, const void *fields, size_t bytes, const char *text)
{
	size_t len = text ? strlen(text) : 0;
	u64 *body;

	if (t - g->last >= EVENT_DT_LIMIT)
		gen_jump(g, t);
	body = gen_put(g, KIND_event | (u64)type << 3 | (u64)len << 11 | (t - g->last) << EVENT_DT_SHIFT, (u32)(bytes + len + 7) / 8);
	if (bytes)
		memcpy(body, fields, bytes);
	if (len)
		memcpy((char *)body + bytes, text, len);
	g->last = t;
}

#define GEN_EVENT(g, t, name, text, ...) \
	gen_event(g, t, EVENT_##name, &(struct rec_##name) { __VA_ARGS__ }, sizeof(struct rec_##name), text)

static inline void gen_packed(struct gen *g, u64 kind, u64 t, u64 addr, u64 size, u32 node)
{
	u32 words = kind == KIND_alloc || kind == KIND_enter;
	u64 *body;

	if (t - g->last >= PACKED_DT_LIMIT)
		gen_jump(g, t);
	body = gen_put(g, kind | addr | (t - g->last) << PACKED_DT_SHIFT, words);
	if (words)
		*body = size << NODE_BITS | node;
	g->last = t;
}

static inline void gen_alloc(struct gen *g, u64 t, u64 addr, u64 size, u32 node) { gen_packed(g, KIND_alloc, t, addr, size, node); }
static inline void gen_free(struct gen *g, u64 t, u64 addr) { gen_packed(g, KIND_free, t, addr, 0, 0); }
static inline void gen_leave(struct gen *g, u64 t, u64 addr) { gen_packed(g, KIND_leave, t, addr, 0, 0); }
static inline void gen_enter(struct gen *g, u64 t, u64 addr, u64 size, u32 node) { gen_packed(g, KIND_enter, t, addr, size, node); }

static inline u32 gen_node(struct gen *g, u32 parent, u64 pc)
{
	*gen_put(g, KIND_node | pc << 3, 1) = parent;
	return ++g->nodes;
}

/* The collector's own stream: a session whose ticks are nanoseconds. */
static inline void gen_session(struct gen *own, u64 t, u64 large)
{
	GEN_EVENT(own, t, session, "test", .large = large, .tick_kind = TICK_MONOTONIC, .page_size = 4096);
	GEN_EVENT(own, t, clock, NULL, .ticks = 1, .monotonic = 1);
	GEN_EVENT(own, t, clock, NULL, .ticks = 1000000001, .monotonic = 1000000001);
}

static inline u64 gen_random(u64 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

#endif
