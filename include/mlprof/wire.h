/*
 * wire.h - all that the two sides of the process border know of each other.
 *
 *   chunk (4096 bytes)
 *   +--------------+--------------------------->          <-----------------------+
 *   | chunk_head   | words up: one a record      ...      words down: the bodies  |
 *   +--------------+--------------------------->          <-----------------------+
 *
 * Growing from both ends keeps the reader's cursor free of load-to-address chains: it
 * knows where the next record is without having looked at this one.
 *
 *   packed word   kind:3 | address bits 3..46 | ticks since the last record << 47
 *   packed body   size << 28 | node
 *   node word     kind:3 | pc << 3                       body: parent node
 *   event word    kind:3 | type:8 << 3 | text bytes:12 << 11 | ticks << 23
 *
 * A stream is a slot of a process image's shared memory: threads come and go in it (the
 * `thread` record says who), its chunk numbers and node numbers count on.
 */
#ifndef MLPROF_WIRE_H
#define MLPROF_WIRE_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int32_t i32;
typedef int64_t i64;

enum {
	WIRE_VERSION = 4,
	CHUNK_BYTES = 4096,         /* = PIPE_BUF: a chunk is written whole */
	CHUNK_WORDS = CHUNK_BYTES / 8,
	CHUNK_HEAD_WORDS = 8,
	CHUNK_ROOM = CHUNK_WORDS - CHUNK_HEAD_WORDS,
	RING_CHUNKS = 16,           /* of each slot; sent with one write when all are full */
	SEGMENT_SLOTS = 64,
	TEXT_MAX = 3584,
};

#define CHUNK_MAGIC   0x4b43504dU        /* "MPCK" */
#define SEGMENT_MAGIC 0x4745504dU        /* "MPEG" */
#define CONTROL_MAGIC 0x4c43504dU        /* "MPCL" */

struct chunk_head {
	u32 magic;
	u32 version;
	u32 pid;                    /* 0: the collector's own streams */
	u32 slot;
	u64 born;                   /* start stamp of the process image: (pid, born) names it */
	u64 seq;                    /* number of this chunk in its stream */
	u64 t0;                     /* ticks of the record before the first */
	u32 node_base;              /* number of the first node named in this chunk */
	u32 lost;                   /* records dropped between the chunk before and this one */
	u64 used;                   /* words up | words down << 32, published with one store */
	u64 reserved;
};

union chunk {
	struct chunk_head head;
	u64 word[CHUNK_WORDS];
};

static_assert(sizeof(struct chunk_head) == CHUNK_HEAD_WORDS * 8, "chunk head");
static_assert(sizeof(union chunk) == CHUNK_BYTES, "chunk");

#define USED_UP(used)   ((u32)(used))
#define USED_DOWN(used) ((u32)((used) >> 32))
#define USED_STEP(up, down) ((u64)(up) | (u64)(down) << 32)

/* ---- words ------------------------------------------------------------------------- */

#define PACKED_DT_SHIFT 47
#define PACKED_DT_LIMIT (1ull << 17)
#define PACKED_ADDR_MASK 0x00007ffffffffff8ull
#define PACKED_SIZE_LIMIT (1ull << 36)
#define NODE_BITS 28
#define NODE_MASK ((1u << NODE_BITS) - 1)
#define NODE_RESTART (NODE_MASK / 2)    /* numbers beyond it may be followed by 1, in a new chunk behind unmapped_code */
#define EVENT_TYPE(w) ((u8)((w) >> 3))
#define EVENT_TEXT(w) ((u32)((w) >> 11) & 0xfff)
#define EVENT_DT_SHIFT 23
#define EVENT_DT_LIMIT (1ull << 41)

enum packed_kind {
#define PACKED(kind, name, words, meaning) KIND_##name = kind,
#define RECORD(type, name, meaning)
#define FIELD(name, unit, meaning)
#define NO_FIELDS
#define TEXT(meaning)
#define NO_TEXT
#define END_RECORD(name)
#include "records.def"
#undef PACKED
#undef RECORD
};

enum event_type {
#define PACKED(kind, name, words, meaning)
#define RECORD(type, name, meaning) EVENT_##name = type,
#include "records.def"
#undef RECORD
	EVENT_TYPES = 64
};

#undef FIELD
#undef NO_FIELDS
#undef END_RECORD

/* struct rec_hello { u64 pid, ppid, ... }: the fixed fields of an event's body, before its text */
#define RECORD(type, name, meaning) struct rec_##name {
#define FIELD(name, unit, meaning) u64 name;
#define NO_FIELDS
#define END_RECORD(name) };
#include "records.def"
#undef PACKED
#undef RECORD
#undef FIELD
#undef NO_FIELDS
#undef TEXT
#undef NO_TEXT
#undef END_RECORD

enum { HELLO_FORKED = 1, HELLO_BARE = 2 };
enum { MAP_KIND_ANON, MAP_KIND_FILE, MAP_KIND_SHARED };
enum { CHILD_FORK, CHILD_SPAWN };
enum { DIED_EXITED, DIED_SIGNAL, DIED_UNKNOWN, DIED_EXEC, DIED_RUNNING };
enum { TICK_TSC, TICK_MONOTONIC };

enum { DEVICE_CPU = 1, DEVICE_GPU = 2, DEVICE_HOST_MEMORY = 4 };   /* HOST_MEMORY: its memory is the program's own heap */
/* BOUNDED: `queued` lies inside of its call. HOST: mlprof takes the stamps, on the thread that is the device. */
enum { DEVICE_CLOCK_NONE, DEVICE_CLOCK_CALIBRATED, DEVICE_CLOCK_BOUNDED, DEVICE_CLOCK_HOST, DEVICE_CLOCKS };
enum { QUEUE_OUT_OF_ORDER = 1, QUEUE_UNTIMED = 2 };
enum { CALL_OTHER, CALL_ENQUEUE, CALL_SUBMIT, CALL_WAIT, CALL_BUILD, CALL_MEMORY };
enum { WORK_KERNEL, WORK_READ, WORK_WRITE, WORK_COPY, WORK_FILL, WORK_MAP, WORK_UNMAP, WORK_MARK, WORK_GROUP, WORK_OTHER };
#define WORK_BYTES_UNKNOWN (~(u64)0)
/* OBSERVED: start and end are host stamps, in ticks. IN_*: it has no times, but start and end of the whole that it is a part of. */
enum { DONE_TIMED, DONE_OBSERVED, DONE_UNTIMED, DONE_FAILED, DONE_IN_TIMED, DONE_IN_OBSERVED };
enum { MEMORY_HOST_VISIBLE = 1, MEMORY_DEVICE_LOCAL = 2, MEMORY_IMPORTED = 4, MEMORY_HOST_POINTER = 8, MEMORY_SHARED = 16 };
enum { LABEL_QUEUE, LABEL_MEMORY, LABEL_DEVICE };
#define PACK3(x, y, z) ((u64)(x) | (u64)(y) << 21 | (u64)(z) << 42)

/* ---- shared memory: what the collector sees without being told ---------------------- */

/* One thread's place. Written by the thread, read by the collector. */
struct slot_head {
	u32 busy;                   /* a stamp is taken or being taken, its record is not yet published */
	u32 tid;                    /* owner; 0: free */
	u64 seq;                    /* chunk being filled: ring[seq % RING_CHUNKS] */
	u64 sent;                   /* chunks below this number went through the pipe (or were dropped) */
	u64 lost;                   /* records dropped by this slot so far */
	u64 lost_stacks;            /* stacks cut short or not taken */
	u64 hard_stacks;            /* stacks that went through code without CFI, by frame pointer */
	u64 stack_misses;           /* stacks that were not in the cache */
	u64 waited_ticks;           /* spent waiting for a full pipe */
	u64 probe_enters;           /* probed calls that began here ... */
	u64 probe_exits;            /* ... and that came to an end here; what is missing never returned (longjmp, exit) */
	u64 probe_short;            /* of these, shorter than their row's min: not recorded */
	u64 unused[4];
	u32 ended;                  /* the owner's last destructor ran */
	u32 pad;
};

struct slot {
	union { struct slot_head head; char page[CHUNK_BYTES]; };
	union chunk ring[RING_CHUNKS];
};

struct segment_head {
	u32 magic, version;
	u32 pid, index;             /* index: slots of this file start at index * SEGMENT_SLOTS */
	u64 born;
	u64 lost;                   /* records that found no slot */
	u64 bind_ns;                /* CPU time spent looking through modules for functions to wrap and to probe */
	u64 probe_sites;            /* functions that are probed */
	char quiet[128];            /* why recording ended early, empty if it did not */
};

/* File "PID.BORN(hex).INDEX" in the session directory. */
struct segment {
	union { struct segment_head head; char page[CHUNK_BYTES]; };
	struct slot slot[SEGMENT_SLOTS];
};

static_assert(sizeof(struct slot) == (1 + RING_CHUNKS) * CHUNK_BYTES, "slot");

/* For ASAN_OPTIONS: a child that is built with AddressSanitizer would refuse to run with us in front of its runtime. */
#define ASAN_LETS_US_IN "verify_asan_link_order=0"

enum { STACKS_NONE, STACKS_CALLER, STACKS_FULL };
enum { ON_FULL_BLOCK, ON_FULL_DROP };
enum { DEVICE_TIME_KERNEL, DEVICE_TIME_SUBMIT, DEVICE_TIME_OFF };     /* of each kernel; of what is submitted, as a whole; of nothing */
enum { API_OPENCL = 1, API_VULKAN = 2, API_IREE = 4 };
enum { SESSION_OPEN = 1, SESSION_DONE, SESSION_CLOSED };

/*
 * File "control" in the session directory: written by the collector, mapped read-only by the programs.
 * The FIFO beside it is called "pipe".
 */
struct control {
	u32 magic, version;
	u32 state;                  /* SESSION_OPEN while records are taken; DONE: the main process's summary is out */
	u32 collector_pid;
	u64 heartbeat;              /* counts up while the collector lives */
	u32 tick_kind;              /* TICK_* */
	u32 stacks;                 /* STACKS_* */
	u32 on_full;                /* ON_FULL_* */
	u32 follow;                 /* 1: children too */
	u32 check_stacks;           /* 1: compare every stack with libunwind (tests) */
	u32 device_time;            /* DEVICE_TIME_* */
	u32 apis;                   /* API_*: whose calls are recorded */
	u32 ticks_per_ms;           /* 0 until the collector has seen enough of both clocks */
	u32 bare_pid;               /* the program that started the collector and waits for its summary, whatever it becomes; 0: none */
	char library[512];          /* path of libmlprof.so, for children whose LD_PRELOAD was replaced */
	char trace[1024];           /* path of the trace, for the one line said when the collector is gone */
};

#endif
