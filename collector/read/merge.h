/*
 * merge.h - chunks of many streams become one stream of records in time order.
 *
 *   chunk --merge_push()--> stream: queue of pieces --merge_advance(W)--> window --> sink
 *
 * A stream is one slot of one process image. Its chunks come in order; a chunk may come twice (first
 * peeked at in shared memory while it was being filled, then whole through the pipe), and what was already
 * taken is cut off. merge_advance(W) hands all records stamped before W to the sink, in windows small enough
 * for the cache. What comes later with a stamp before W is late: it is taken at W and counted.
 *
 * Order: by time; at equal times what frees comes before what allocates, then by age of the process, slot
 * and position. Records of one stream never change places. Where the windows are cut changes nothing.
 */
#ifndef MERGE_H
#define MERGE_H

#include "chunk.h"
#include <uthash.h>

/* ---- streams ----------------------------------------------------------------------- */

struct image {                          /* a process image: (pid, born) */
	u32 pid;
	u64 born;
	u32 id;                         /* small, reused after its end */
	u32 streams;
	bool over;                      /* its `died` record was met */
	bool exiting;                   /* it sent an `exit` record */
	void *model;                    /* for the sink */
	void *feeder;                   /* for whoever pushes */
};

struct stream_key {
	u64 born;
	u32 pid, slot;
};

/* Chunks of a stream from `first` on carry the nodes first, first + 1, ...; a loss begins a new run. */
struct node_run {
	u32 first, at;                  /* node number, index into pc[] */
};

struct piece {
	union chunk *chunk;
	struct extent from, to;
	u64 t0;                         /* ticks before its first record */
};

struct held_block {                     /* between the two halves of a realloc */
	u64 size;
	u32 row;
	bool found;
};

enum { LABEL_NONE = UINT32_MAX };

struct stream {
	struct stream_key key;
	struct image *image;
	u64 seen;                       /* newest chunk, and how much of it was taken */
	bool any;
	struct extent taken;
	u32 node_next;
	u64 last;                       /* ticks of the newest record */
	u64 lost;                       /* records its chunks said were dropped */

	struct piece *queue;            /* ring of `room`, a power of two */
	u32 head, tail, room;

	/* decoder */
	u32 up, down;
	u64 ticks, last_alloc;
	u32 tie;                        /* an alloc was seen at `ticks` */
	bool open, active;

	/* nodes named so far, and what the sink calls their malloc blocks */
	u64 *pc;
	u32 *parent, *number, *label;
	u32 nodes, node_room;
	struct node_run *run;
	u32 runs, run_room;

	/* for the sink */
	u32 tid;
	struct held_block held;
	/* for whoever feeds us */
	u64 bound;
	u64 stuck_since, stuck_last;    /* for the live reader: found inside a record since, and with nothing new since */
	u32 stuck_looks;

	UT_hash_handle hh;
};

/* Index of a node number in the stream's arrays; 0 (no stack) if it was lost or never named. */
u32 stream_node(const struct stream *s, u32 number);

/* ---- windows ------------------------------------------------------------------------ */

enum rec_kind { REC_ALLOC = 1, REC_FREE = 2, REC_TEMP_FREE = 3, REC_EXTRA = 4 };

#define REC_IMAGE_SHIFT 47
#define KEY_INDEX_BITS 20
#define KEY_TIME_SHIFT (KEY_INDEX_BITS + 1)
#define KEY_INDEX_MASK ((1u << KEY_INDEX_BITS) - 1)

struct rec {
	u64 a;                          /* enum rec_kind | address | image id << 47 */
	u64 w;                          /* alloc: size << 28 | label; extra: index */
};

/* What is rare: unknown stacks, large blocks, reallocs, events. */
enum extra_kind { EXTRA_ALLOC, EXTRA_FREE, EXTRA_LEAVE, EXTRA_ENTER, EXTRA_EVENT };

struct extra {
	struct stream *stream;
	enum extra_kind kind;
	u32 node;                       /* number in the stream */
	u64 addr, size;
	struct event event;
};

struct window {
	const struct rec *rec;
	const u64 *key;                 /* in order: ticks since base << 21 | class << 20 | index of rec */
	u32 count;
	u64 base;
	const struct extra *extra;
	struct image *const *image;     /* by id */
};

struct sink {
	void *to;
	void (*window)(void *to, const struct window *w);
	void (*early)(void *to, const struct event *e);         /* of the collector's own stream, when it is pushed */
};

/* ---- the merge ---------------------------------------------------------------------- */

struct merge;

struct merge_counts {
	u64 records, late, bad_chunks, lost;
};

struct merge *merge_new(struct sink sink);
void merge_free(struct merge *m);
void merge_large(struct merge *m, u64 size);            /* blocks from here on come as extras */

union chunk *merge_chunk(struct merge *m);              /* a buffer to read into */
void merge_unread(struct merge *m, union chunk *c);     /* ... that was not used */
/* Takes the buffer. The stream it belongs to, or NULL if it was refused. */
struct stream *merge_push(struct merge *m, union chunk *c);
void merge_advance(struct merge *m, u64 before);        /* UINT64_MAX: all */

u64 merge_reached(const struct merge *m);               /* all before this was handed on */
u64 merge_pending_bytes(const struct merge *m);         /* chunks held */
struct merge_counts merge_counts(const struct merge *m);

struct stream *merge_streams(struct merge *m);          /* uthash list, iterate with hh.next */
struct stream *merge_find(struct merge *m, u32 pid, u64 born, u32 slot);
struct stream *merge_stream(struct merge *m, u32 pid, u64 born, u32 slot);     /* made if need be; may be NULL */

#endif
