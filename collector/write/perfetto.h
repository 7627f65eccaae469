/*
 * perfetto.h - what the files of the trace writer share.
 *
 *   perfetto.c          order of events: begin, listener, finish
 *   perfetto_out.c      whole packets to the file, and the end of the file on a packet border
 *   perfetto_text.c     bytes to UTF-8
 *   perfetto_head.c     clocks, machine, identity, attributes
 *   perfetto_tracks.c   processes, threads, counters, samples
 *   perfetto_stacks.c   functions, files, mappings, frames and callstacks, each written once per sequence
 *   perfetto_heap.c     heap profile dumps
 *   perfetto_spans.c    large blocks on lanes, instants
 *   perfetto_devices.c  devices: their tracks and counters; see perfetto_devices.h
 *   perfetto_work.c     calls and device work
 *   perfetto_memory.c   device memory
 *   perfetto_args.c     what stands beside a slice
 *
 * Sequences: one writer could do with one, but interned names live per sequence, a heap dump needs a sequence of
 * its own, and thread descriptors leave traces in other events of theirs.
 */
#ifndef PERFETTO_H
#define PERFETTO_H

#include "perfetto_min.pb-c.h"
#include "encode.h"
#include "writer.h"

enum {
	SEQ_HEAD = 1,                   /* metadata, descriptors, process stats */
	SEQ_COUNTERS,
	SEQ_INSTANTS,
	SEQ_FIRST_FREE = 16,            /* spans of a process, heap dumps: one each */
};

/* TracePacket */
enum {
	PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_FLAGS = 13, PACKET_INTERNED = 12,
	PACKET_PROCESS_STATS = 9, PACKET_TRACK_EVENT = 11, PACKET_PROFILE = 37, PACKET_MODULE_SYMBOLS = 61,
};

/* TrackEvent and its DebugAnnotation */
enum {
	EVENT_ANNOTATION = 4, EVENT_KIND = 9, EVENT_NAME_IID = 10, EVENT_TRACK = 11, EVENT_NAME = 23,
	EVENT_COUNTER = 30, EVENT_COUNTER_DOUBLE = 44, EVENT_CALLSTACK_IID = 56, EVENT_CATEGORY_IID = 3, EVENT_FLOW = 47,
	KIND_BEGIN = 1, KIND_END = 2, KIND_INSTANT = 3, KIND_COUNTER = 4,
	ARG_NAME_IID = 1, ARG_BOOL = 2, ARG_UINT = 3, ARG_INT = 4, ARG_DOUBLE = 5, ARG_TEXT = 6, ARG_POINTER = 7, ARG_NAME = 10, ARG_TEXT_IID = 17,
};

/* What has been written of one process. Index = process.index. */
struct process_tracks {
	u32 goes_on;                    /* 1 + index of the image whose tracks this one goes on on; all else is there then */
	u64 process;                    /* uuid; 0: not yet described */
	u64 born;                       /* ticks */
	u64 memory, activity, large;    /* groups, so that order can be given */
	u64 curve[CURVES];
	u64 minor, major, cpu;
	u32 command_bytes;              /* of this image, as the process tree has it */

	struct rec_sample sampled;      /* the last one written */
	struct rec_sample high;         /* largest since then */
	u64 sampled_ticks, high_ticks;
	u64 sample_gap;                 /* smallest ns between two written samples, doubles in long runs */
	u32 samples;
};

struct perfetto {
	struct enc out;                 /* whole packets, not yet in the file; while one is written also its beginning */
	size_t packet;                  /* where that one begins */
	int fd;
	u64 written;                    /* bytes in the file, all of them whole packets */
	int error;                      /* -errno of the first write that failed; nothing is written after it */

	struct session *session;
	bool uts_written;
	u64 next_uuid;
	u32 next_sequence;
	u32 started;                    /* bits: sequences below 16 that have had their first packet */
	u64 tree_total;                 /* uuid of the counter */
	u64 all_total;                  /* ... and of the one with devices */
	struct process_tracks *tracks;
	u32 tracks_room;
	struct process_devices **devices;       /* by process; NULL: it has none */
	u32 devices_room;
};

/* perfetto_out.c */
void out_flush(struct perfetto *w);
struct enc *packet_open(struct perfetto *w, u32 sequence, u32 flags, u64 ns);
void packet_close(struct perfetto *w);
void packet_rare(struct perfetto *w, PerfettoMin__TracePacket *packet);         /* on SEQ_HEAD; fills in the rest */
u32 sequence_flags(struct perfetto *w, u32 sequence);

/* perfetto_text.c */
void enc_utf8(struct enc *e, u32 field, const char *text);
void utf8_fix(char *text);
char *utf8_copy(const char *text);                                              /* to be freed */

/* perfetto_head.c */
void head_open(struct perfetto *w);
void head_begin(struct perfetto *w);
void head_end(struct perfetto *w, const struct symbols *y);

/* perfetto_tracks.c */
struct process_tracks *tracks_of(struct perfetto *w, const struct process *p);  /* NULL: no memory */
void tracks_process(struct perfetto *w, struct process *p);
void tracks_thread(struct perfetto *w, struct process *p, struct thread *t);
void tracks_point(struct perfetto *w, struct process *p, enum curve_kind c, u64 ticks, i64 bytes);
void tracks_sample(struct perfetto *w, struct process *p, u64 ticks, const struct rec_sample *now);
void tracks_end(struct perfetto *w, struct process *p);                         /* labels: how it ended */
u64 track_new(struct perfetto *w, const char *name, u64 parent, int rank, int child_ordering);
u64 counter_bytes(struct perfetto *w, const char *name, const char *share, const char *meaning, u64 parent, int rank);
u64 counter_unit(struct perfetto *w, const char *name, const char *unit, u64 parent, int rank);   /* unit NULL: none */
void counter_point(struct perfetto *w, u64 track, u64 ns, i64 value);
void counter_double(struct perfetto *w, u64 track, u64 ns, double value);
u64 process_end(const struct session *s, const struct process *p);             /* ticks */
const char *process_ending(const struct process *p, char *text, size_t size);

/* perfetto_stacks.c: interned data of one sequence */
struct stacks;
struct stacks *stacks_new(struct symbols *y, const struct process *p);          /* y NULL: names come later */
void stacks_name(struct stacks *k, struct perfetto *w, struct symbols *y);      /* ... and here they are */
void stacks_next_sequence(struct stacks *k);                                     /* all numbers begin again */
void stacks_free(struct stacks *k);
u32 stacks_callstack(struct stacks *k, u32 node, const char *below);            /* below: a frame put inside it, or NULL */
u32 stacks_event_name(struct stacks *k, const char *name);                      /* the pointer is the key */
u32 stacks_category(struct stacks *k, const char *name);
u32 stacks_arg_name(struct stacks *k, const char *name);
u32 stacks_arg_text(struct stacks *k, const char *text);
size_t stacks_pending(const struct stacks *k);
void stacks_write(struct stacks *k, struct enc *e);                             /* what is new, into the open packet */

/* perfetto_args.c: annotations of the event that is open in `e` */
struct arg_keys { struct arg_key *keys; };
void arg_number(struct stacks *k, struct enc *e, const char *name, u32 field, u64 value);       /* field: ARG_UINT, ... */
void arg_real(struct stacks *k, struct enc *e, const char *name, double value);
void arg_string(struct stacks *k, struct enc *e, const char *name, const char *text);
void args_of_text(struct arg_keys *all, struct stacks *k, struct enc *e, const struct arg_text *args);
const char *arg_text_once(struct arg_keys *all, const char *text, size_t len); /* the same pointer for the same text; never NULL */
void arg_keys_free(struct arg_keys *all);

/* perfetto_devices.c, perfetto_work.c, perfetto_memory.c */
void devices_counter(struct perfetto *w, struct process *p, const struct counter_point *c);
void devices_point(struct perfetto *w, struct process *p, struct device *d, int heap, u64 ticks, i64 bytes);
void devices_finish(struct perfetto *w, struct symbols *y);
void devices_free(struct perfetto *w);
void works_run(struct perfetto *w, struct process *p, struct thread *t, const struct work_run *r);
void works_call(struct perfetto *w, struct process *p, struct thread *t, const struct call *c);
void works_work(struct perfetto *w, struct process *p, const struct work *work);
void memory_born(struct perfetto *w, struct process *p, struct device_memory *m);
void memory_died(struct perfetto *w, struct process *p, struct device_memory *m);

/* perfetto_heap.c */
void heap_dumps(struct perfetto *w, struct session *s, struct symbols *y);

/* perfetto_spans.c */
void spans_write(struct perfetto *w, struct session *s, struct symbols *y);
void instants_write(struct perfetto *w, struct session *s);

static inline u64 ns_of(const struct perfetto *w, u64 ticks)
{
	return session_ns(w->session, ticks);
}

#endif
