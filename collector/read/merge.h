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

struct sink {
	void *to;
	void (*window)(void *to, const struct window *w);
	void (*early)(void *to, const struct event *e);         /* of the collector's own streams, when it is pushed */
};

struct merge;

struct merge *merge_new(struct sink sink);
void merge_free(struct merge *m);

union chunk *merge_chunk(struct merge *m);              /* a buffer to read into */
void merge_unread(struct merge *m, union chunk *c);     /* ... that was not used */
/* Takes the buffer. The stream it belongs to, or NULL if it was refused. */
struct stream *merge_push(struct merge *m, union chunk *c);
void merge_advance(struct merge *m, u64 before);        /* UINT64_MAX: all */

u64 merge_reached(const struct merge *m);               /* all before this was handed on */
u64 merge_pending_bytes(const struct merge *m);         /* chunks held */
struct intake_counts merge_counts(const struct merge *m);

struct stream *merge_streams(struct merge *m);          /* uthash list, iterate with hh.next */
struct stream *merge_find(struct merge *m, u32 pid, u64 born, u32 slot);
struct stream *merge_stream(struct merge *m, u32 pid, u64 born, u32 slot);     /* made if need be; may be NULL */

#endif
