/*
 * window.h - how records come to the model: decoded, in time order, some thousands at once.
 *
 *   window:  key[]  in order; the low bits of a key are the index of a record
 *            rec[]  what nearly all records are: a block was born, a block died
 *            extra[] the rest, each with the stream it came from
 *
 * A stream is one slot of one process image. It carries the names of its stack frames, and what the model calls them.
 */
#ifndef WINDOW_H
#define WINDOW_H

#include <mlprof/wire.h>
#include <stdbool.h>
#include <uthash.h>

/* An event, read in place: body holds the fields in the order of records.def. */
struct event {
	u64 ticks;
	u32 type, text_len;
	const u64 *body;
	const char *text;
};

#define EVENT_BODY(e, name) ((const struct rec_##name *)(e)->body)

/* How far into a chunk one has come, and what lay on the way. */
struct extent {
	u32 up, down;                   /* words */
	u32 nodes, records;
	u64 ticks;                      /* of the last record */
	bool exits;                     /* an `exit` record was met */
	u64 exit_ticks;                 /* of the last one by _exit(), 0: none ... */
	u32 exit_status;                /* ... and its status */
	bool children;                  /* a `child` record was met */
};

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

struct held_block {                     /* between the two halves of a realloc */
	u64 size;
	u32 row;
	bool found;
};

struct token_loop {                     /* the thread's last call that took tokens: probe_tokens.c */
	u32 tid;
	bool steps;                     /* of one */
	u64 begin, end;
};

enum { LABEL_NONE = UINT32_MAX };

/* A wait of a thread; another one may turn out to have been around it. */
struct wait_done {
	u64 begin, ns;
};

enum { WAITS_KEPT = 32 };

struct stream {
	struct stream_key key;
	struct image *image;
	u64 seen;                       /* newest chunk, and how much of it was taken */
	bool any;
	struct extent taken;
	u32 node_next;
	u64 last;                       /* ticks of the newest record */
	u64 lost;                       /* records its chunks said were dropped */

	struct piece *queue;            /* of the merge: ring of `room`, a power of two */
	u32 head, tail, room;

	/* decoder */
	u32 up, down;
	u64 ticks, last_alloc;
	u32 tie;                        /* an alloc was seen at `ticks` */
	bool open, active;

	/* nodes named so far, and what the sink calls their malloc blocks; one more LABEL_NONE is behind the last */
	u64 *pc;
	u32 *parent, *number, *label;
	u32 nodes, node_room;
	struct node_run *run;
	u32 runs, run_room;
	struct node_run afresh;         /* numbers from `first` on, which begin at `at`, are all that will be used again; at 0: nobody said so */
	u32 afresh_run;                 /* the run they begin in */
	u32 restart;                    /* the run that begins at 1 again, behind greater numbers; 0: none */

	/* for the sink */
	u32 tid;
	struct held_block held;
	struct wait_done waited[WAITS_KEPT];    /* oldest first */
	u32 waits;
	u32 waiter;                     /* the thread that waited last */
	struct token_loop loop;
	/* for whoever feeds us */
	u64 bound;
	u64 stuck_since, stuck_last;    /* for the live reader: found inside a record since, and with nothing new since */
	u32 stuck_looks;
	bool peeked;                    /* the newest chunk was not sent yet when it was taken, so the rest of it is to come */
	u64 begun, begun_at;            /* newest chunk that it had begun when it was last looked at for that, and when that was new */
	u64 sent, sent_at;              /* chunks that it had sent, some of them aside, and when that was new */

	UT_hash_handle hh;
};

/* Index of a node number in the stream's arrays; 0 (no stack) if it was lost or never named. */
u32 stream_node(const struct stream *s, u32 number);

/* ---- windows ------------------------------------------------------------------------ */

/* Bits. A free that follows its alloc in their stream makes the block a temporary one. */
enum rec_kind { REC_FREE = 1, REC_TEMPORARY = 2, REC_PLAIN = 4 };

#define REC_IMAGE_SHIFT 47
#define PLAIN_SIZE_LIMIT (PACKED_SIZE_LIMIT - 1)        /* blocks of this size and above come as extras; in the live table it means "huge" */
#define KEY_INDEX_BITS 20
#define KEY_TIME_SHIFT (KEY_INDEX_BITS + 1)
#define KEY_INDEX_MASK ((1u << KEY_INDEX_BITS) - 1)

struct rec {
	u64 a;                          /* enum rec_kind | address | image id << 47 */
	u64 w;                          /* alloc: size << 28 | label; free: 0; not plain: index of an extra */
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

/* Records up to `end` came from this stream, if not from that of the run before. */
struct run {
	u32 end;
	const struct stream *stream;
};

struct window {
	const struct rec *rec;
	const u64 *key;                 /* in order: ticks since base << 21 | class << 20 | index of rec; the last one twice */
	u32 count;
	u64 base;
	const struct extra *extra;
	struct image *const *image;     /* by id */
	const struct run *run;          /* by place in rec, not in time */
};

/* What the reader counted. */
struct intake_counts {
	u64 records, late, bad_chunks, lost;
};

#endif
