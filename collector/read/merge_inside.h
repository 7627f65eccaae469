/*
 * merge_inside.h - what the parts of the merge share.
 *
 *   streams.c   chunks to read into, images, streams and their nodes
 *   push.c      a chunk is checked, cut and queued
 *   decode.c    queued chunks become records, up to the end of a window
 *   merge.c     windows
 */
#ifndef MERGE_INSIDE_H
#define MERGE_INSIDE_H

#include "../util/array.h"
#include "merge.h"

struct piece {
	union chunk *chunk;
	struct extent from, to;
	u64 t0;                         /* ticks before its first record */
};

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
	struct intake_counts counts;

	struct rec *rec;
	u64 *key, *other;
	u32 rec_room;
	u32 *start;                             /* first key of each stream's run */
	u32 start_room;
	struct run *run;                        /* of the window: whose records they are */
	u32 run_room;
	struct extra *extra;
	u32 extras, extra_room;

	union chunk **free_chunk, **done;       /* done: decoded, but events still point into them */
	u32 free_chunks, free_room, dones, done_room;
	void **slab;
	u32 slabs, slab_room;
	u64 held;
};

struct cursor {
	struct merge *m;
	struct stream *s;
	u64 end;                        /* ticks */
	u32 n, limit;
	u64 base;
};

/* streams.c */
struct image *image_find(struct merge *m, u32 pid, u64 born);
void stream_name_node(struct stream *s, u64 pc, u32 parent);
void stream_name_afresh(struct stream *s);      /* the next node is the first one that will be used again */
void stream_forget_nodes(struct stream *s);     /* those before it, once what uses them has been taken */
void streams_free_over(struct merge *m);
void streams_release(struct merge *m);

/* push.c: blocks of at least this size come as extras. */
void merge_large(struct merge *m, u64 size);

/* decode.c: one stream, into rec[] and key[] from c->n on, up to c->end or c->limit records in all. */
void decode_stream(struct cursor *c);
u64 decode_next_ticks(const struct stream *s);

static inline const struct piece *piece_at(const struct stream *s, u32 i)
{
	return s->tail - s->head > i ? &s->queue[(s->head + i) & (s->room - 1)] : NULL;
}

#endif
