/*
 * devices.h - devices as session.h shows them: who they are, what ran on them, what lay in their memory.
 *
 *   process --- device --- queue          where work is taken from
 *                     `--- kernel         what ran there, summed up by name
 *                     `--- heap           bytes
 *   listener <-- call, work, memory       one by one, as soon as all is known of them; not kept
 *
 * A device's stamps are nanoseconds of a clock of its own; times ending in _ns are CLOCK_MONOTONIC like everywhere else.
 */
#ifndef DEVICES_H
#define DEVICES_H

#include <mlprof/wire.h>
#include <stdbool.h>

struct process;

enum { WORK_KINDS = WORK_OTHER + 1, DONE_NEVER = DONE_FAILED + 1, DONE_KINDS, HEAPS_MAX = 32 };

/* Kinds of calls that only probes have, beside CALL_*. A mark is a moment. */
enum { CALL_SPAN = CALL_MEMORY + 1, CALL_COPY, CALL_MARK, CALL_KINDS };

/* Beside DEVICE_*: what the probes of a library belong to. It has queues and memory like a device, if only in the library's
 * view, and one with neither sums up the library's kernels that ran on the calling threads. */
enum { DEVICE_LIBRARY = 1 << 16 };

/* Calls of a process beyond so many are shown without their arguments. */
enum { CALLS_FULL = 200000 };

/* An amount and how long it took, as far as that is known: of work that others ran beside there is no rate. */
struct paced {
	double amount;
	u64 ns;
};

static inline void pace_add(struct paced *p, double amount, u64 ns)
{
	p->amount += amount;
	p->ns += ns;
}

/* Work of one name, or of one kind. Times are the device's own, of what it timed. */
struct work_sum {
	const char *name;
	u64 calls;                      /* that ended, well or not */
	u64 failed, unfinished, timed, bytes;
	u64 unsized;                    /* whose bytes nobody knows: not in `bytes` */
	u64 observed;                   /* of the timed: by the host, from when it was handed over to when that was waited for */
	u64 shared;                     /* of the timed: together with others; see struct work */
	u64 total_ns, min_ns, max_ns;
	u64 tiles, tile_sum_ns;         /* see struct work */
	double flops;                   /* floating-point operations, as far as they are known */
	struct paced paced_flops;       /* ... of works whose time is their own */
};

struct device_heap {
	i64 now, peak;
	u64 peak_ticks;
	u64 blocks_left_out, left_out_at;       /* of device.block, there at the peak of this time */
	bool used;
};

/* How a device's clock was brought to the host's. */
enum clock_match { MATCH_NONE, MATCH_LINE, MATCH_MONOTONIC, MATCH_BOOTTIME, MATCH_REALTIME };

struct clock_report {
	enum clock_match match;         /* a known clock, or a line of its own */
	u64 samples;
	u64 residual_ns;                /* how far off the times may be */
	double rate_ppm;                /* of the last line, against the host's clock */
	u64 moved, max_moved_ns;        /* work that was put inside of what the host saw of it */
};

/* A range of device memory that its work used. */
struct used_range {
	u64 offset, length;
	const char *name;               /* of who used it first; NULL: unknown */
};

struct used_ranges {
	bool known;                     /* false: nobody looked */
	u64 bytes;                      /* all of them together; those that overlap count once */
	u64 more;                       /* uses of further ones, at least */
	const struct used_range *at;    /* largest first */
	u32 count;
};

/* An allocation whose ranges are known. */
enum { USED_BLOCKS = 16, USED_RANGES = 16 };
struct used_block {
	u32 heap;
	u64 bytes, born, died;
	char *label;
	struct used_ranges used;        /* without `at` */
	struct used_range range[USED_RANGES];
	u32 ranges;
};

struct device {
	u32 index;                      /* in process.device */
	u32 process;
	u64 id;
	u32 flags, clock;               /* DEVICE_*, DEVICE_CLOCK_* */
	u32 number;                     /* among those of the same API in its process */
	char *api, *name, *driver, *label;
	char *title;                    /* "OpenCL 0: name"; of a library its name */
	bool known;                     /* false: used, but never told of */

	u32 pool;                       /* of the process: what its memory is booked in */
	u32 heaps;                      /* 1 + the highest index used */
	struct device_heap heap[HEAPS_MAX];
	u64 allocs, frees;              /* of memory that is its own */
	u64 objects;                    /* that lie in other memory */
	struct used_block *block;       /* at the peak, largest first */
	u32 blocks;

	struct work_sum *kernel;        /* by name, longest first once the session has ended */
	u32 kernels;
	struct work_sum kind[WORK_KINDS];
	u64 done[DONE_KINDS];           /* works by how they ended */
	u64 busy_ns;                    /* at least one piece of work was running */
	struct clock_report match;
	u32 queues;
};

struct queue {
	u64 id;
	struct device *device;
	u32 number;                     /* in its device */
	u32 flags;
	char *name;                     /* "queue 0"; what the program called it follows */
	bool known;
	u64 last_ns;                    /* end of the work that ended last */
	void *tracks;                   /* for writers */
};

/* ---- told to the listener ------------------------------------------------------------- */

/* "key=value" texts, each ended by NUL. */
struct arg_text {
	const char *at;
	u32 length;
};

/* A call into an API. */
struct call {
	u32 kind;                       /* CALL_* */
	const char *name;               /* lives as long as the session */
	u64 begin, end;                 /* ticks */
	u32 node;
	u64 work, works;                /* what it caused */
	i64 error;
	bool failed, unwound;           /* it said so; it was left by an exception */
	struct arg_text args;
};

/* A thread's share of a piece of work. */
struct work_run {
	const char *name;
	u64 work;
	u64 begin, end;                 /* ticks */
	u64 tiles, busy_ns;
};

/* A piece of device work, all over or left unfinished. */
struct work {
	u64 id;
	struct queue *queue;
	u32 kind;                       /* WORK_* */
	u32 done;                       /* DONE_* */
	u32 inside;                     /* DONE_IN_*, if it is untimed: start and end are those of the whole; 0: of no whole */
	const char *name;
	u32 node;                       /* where it was recorded, if that is not where it was submitted */
	u64 bytes, x, y, z, local;      /* bytes may be WORK_BYTES_UNKNOWN */
	u64 tiles, tile_sum_ns;         /* parts that threads did, where they tell of it, and the time inside of them */
	u32 workers;                    /* those threads */
	double flops;
	bool paced;                     /* its time is its own, not that of others as well */
	u64 queued, submitted, start, end;      /* the device's stamps, 0: it has none */
	u32 sharers;                    /* works that these stamps are of, as a whole; 0: of this one alone */
	u64 handed_ns, seen_ns;         /* when it was handed over, when its end was noticed */
	u64 call_begin_ns, call_end_ns; /* 0: its call is not known */
	u64 start_ns, end_ns;
	struct arg_text args;
};

/* Its stamps are the device's, not only what the host saw. */
static inline bool work_has_stamps(const struct work *w)
{
	return w->done == DONE_TIMED || w->sharers;
}

/* A value that a probe read. */
struct counter_point {
	const char *name;               /* lives as long as the session */
	const char *unit;               /* NULL: none */
	u64 ticks;
	double value;
};

/* Something that lies inside of an allocation. */
struct bound {
	const char *what, *label;
	u64 offset, length;
};

/* Device memory, from its birth to its end. */
struct device_memory {
	u64 id, parent;
	struct device *device;
	u32 heap, flags, node, tid;
	u64 bytes, offset, length;
	u64 born, died;                 /* ticks; died 0: alive when its process ended */
	const char *what, *label;       /* label NULL: it has none */
	struct arg_text args;
	const struct bound *bound;      /* told at its end: what lay in it, the first ones */
	u32 bounds;
	u64 bound_count;
	struct used_ranges used;        /* told at its end */
	u64 track;                      /* for writers */
};

static inline bool device_is_library(const struct device *d)
{
	return d->flags & DEVICE_LIBRARY;
}

static inline bool device_counts(const struct device *d)
{
	return !(d->flags & DEVICE_HOST_MEMORY);
}

#endif
