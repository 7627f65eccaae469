/*
 * session.h - what a recording is made of, once its records have been put in order.
 *
 *   session --- process (image) --- thread, module, map, pool, node (stack frame)
 *           `-- scope (tree)   `--- scope (process): now, peak, curve, who held the peak
 *
 * The model is pure: no descriptor, no printf, no clock. Records come in through
 * session_records() in time order; writers hear of things as they happen through a listener,
 * and read the rest from here when session_end() has been called. Times are ticks inside and
 * become nanoseconds of CLOCK_MONOTONIC through session_ns().
 */
#ifndef SESSION_H
#define SESSION_H

#include "devices.h"

/* ---- bytes ------------------------------------------------------------------------- */

/* A pool is a kind of memory with books of its own. The first ones are the same in every process;
 * file and shared mappings get a pool for each path, in order of appearance. */
enum { POOL_MALLOC, POOL_MMAP, POOL_FIXED };

/* Kinds of pools beside MAP_KIND_*: the memory of a device, and that of one whose memory is the program's own heap,
 * where it is counted already; and what a library's own allocator says it gave out, which is counted where it came from. */
enum { POOL_DEVICE = MAP_KIND_SHARED + 1, POOL_DEVICE_VIEW, POOL_LIBRARY };

struct pool {
	char *name;                     /* "malloc", "mmap", "file:/models/a.gguf", "shared:/memfd:x" */
	int kind;                       /* MAP_KIND_* or POOL_DEVICE*; malloc and mmap are MAP_KIND_ANON */
	i64 now, peak;                  /* bytes */
	i64 blocks;                     /* live */
	u64 peak_ticks;
	u64 allocs, frees, allocated_bytes;
};

struct pool_list {
	struct pool *at;
	u32 count;
};

/* Who holds how much: one row for each (stack, pool) that ever allocated. */
struct holder {
	u32 process;                    /* index into session.process */
	u32 node;                       /* innermost frame of the stack; 0: unknown */
	u32 pool;                       /* index into that process's pools */
	i64 bytes, blocks;              /* live at the moment asked for */
	u64 allocs, allocated_bytes;    /* whole run */
	u64 temporary;                  /* freed by the thread's very next call */
};

struct holder_list {                    /* at a peak: largest first, then by first use; rows of 0 bytes and 0 blocks left out */
	struct holder *at;
	u32 count;
	bool lent;                      /* the same list is somebody else's, who frees it */
};

/* A sum that is watched: the heap total of a process or of the tree. */
struct scope {
	i64 now, peak;
	u64 peak_ticks;
	struct holder_list at_peak;     /* exact; filled by session_end() */
};

/* ---- processes --------------------------------------------------------------------- */

struct thread {
	u32 tid;
	char *name;
	char *own_name;                 /* if `name` is one that a probe row gave it: what the program calls it */
	u64 start, end;                 /* ticks; end 0: it never said so */
	u64 track;                      /* for writers to note what they made of it */
};

struct module {
	u64 start, end, bias;
	u64 loaded, gone;               /* ticks; gone 0: still there at the end */
	u32 epoch_loaded, epoch_gone;   /* in counts of module_gone records; UINT32_MAX: never gone */
	u8 build_id[24];
	u32 build_len;
	char *path;
	u64 mark;                       /* for writers */
};

/* A stack frame and all outside it. Node 0 is "no frame". */
struct node {
	u64 pc;                         /* return address */
	u32 parent;
	u32 epoch;                      /* which module was there then: see process_module() */
};

struct jit_name {
	u64 start, size;
	char *name;
};

/* A finished or still living block of at least --large bytes. */
struct span {
	u64 born, died;                 /* ticks; died 0: alive at the end */
	u64 addr, size;
	u32 node, tid, pool;
	u32 process;
};

struct process {
	u32 index;                      /* in session.process */
	u32 pid, ppid, uid;
	u64 born;                       /* ticks, also the image's name beside pid */
	u64 ended;                      /* ticks */
	struct process *parent;         /* NULL if it is not in the tree */
	char *name;                     /* last part of exe */
	char *exe;
	char *command;                  /* arguments, each ended by NUL */
	u32 command_bytes;
	int died;                       /* DIED_* */
	int code;
	bool forked;                    /* began by fork: blocks it frees without having made them are its parent's */
	bool silent;                    /* seen by fork or exec only: it never sent a record */
	char *not_followed;             /* program it became that does not bring mlprof along, or NULL */

	struct thread *thread;
	u32 threads;
	struct module *module;
	u32 modules;
	struct node *node;
	u32 nodes;
	struct jit_name *jit;           /* sorted by start */
	u32 jits;
	struct pool_list pools;
	struct scope total;             /* malloc + anonymous mappings */
	struct device **device;         /* in order of appearance */
	u32 devices;
	struct holder_list *device_peak;        /* by device: who held its memory at its peak; filled by session_end() */
	struct holder_list at_exit;     /* of all pools: every row, also what is all freed, by first use; filled by session_end() */

	u64 allocs, frees, allocated_bytes, temporary;      /* malloc family */
	u64 inherited_frees;            /* of blocks and device memory from before a fork */
	u64 unknown_frees;              /* of blocks that mlprof never saw */
	u64 unseen_frees;               /* of blocks in whose place others were made */
	u64 peak_rss;
	u64 cpu_ns, minor_faults, major_faults;             /* as last sampled */
	u64 track;                      /* for writers */
};

/* ---- the recording ----------------------------------------------------------------- */

struct losses {
	u64 records;                    /* dropped, by the program or on the way */
	u64 stacks;                     /* not taken or cut short */
	u64 symbols;                    /* addresses without a name */
	u64 late;                       /* records that came after their time had passed */
	u64 bad_chunks;                 /* refused by the reader */
	u64 unknown_frees, unseen_frees;
	u64 spans;                      /* large blocks not drawn for lack of room */
	u64 texts;                      /* names and paths cut, names not told apart */
	u64 unfinished;                 /* device work that was not over when its process ended */
	u64 untimed;                    /* device work that has no times */
	u64 unsized;                    /* ... that moved nobody knows how many bytes */
	u64 failed;                     /* device work that failed */
	u64 unknown_ids;                /* numbers of devices, queues, names, work and memory that nobody told of */
	u64 works;                      /* device work and calls not drawn for lack of room */
	u64 probe_values;               /* of probed calls: could not be read */
	u64 probe_calls;                /* probed calls that never returned */
	u64 probe_frees;                /* of blocks of a library's heap that nobody saw being allocated */
};

/* Calls of one name. */
struct call_sum {
	const char *name;
	u32 kind;                       /* CALL_* */
	u64 calls, errors;
	u64 total_ns, max_ns;
};

/* Calls that say how many tokens they take. */
struct token_sum {
	u64 steps, step_ns;             /* of one token */
	u64 loop_ns;                    /* the steps with what lies between them */
	u64 batches, batch_tokens, batch_ns;    /* of more */
};

/* Probed calls of one name. */
enum { PROBE_RATES = 4 };

struct probe_sum {
	const char *name;               /* of the span; else the function's */
	const char *function, *role;
	const char *preset;             /* NULL: a row of the user's */
	u64 calls, failed, unwound;
	u64 total_ns, min_ns, max_ns;
	u64 self_ns;                    /* not spent in probed calls inside of these */
	u64 bytes;
	double flops;                   /* of the calls whose number is known */
	struct paced paced_flops, paced_bytes;  /* of calls that lasted as long as what they did */
	struct { const char *unit; double total; } rate[PROBE_RATES];   /* "tokens" */
	u32 rates;
	struct token_sum tokens;
};

/* A loaded file that holds a library for which there are probes, none of which saw a call. */
struct unseen {
	const char *library, *path;
};

struct text_list {
	char **at;
	u32 count;
};

struct session {
	char *command;                  /* arguments of the target, each ended by NUL */
	u32 command_bytes;
	struct rec_session head;
	struct text_list options;       /* "name=value" */
	struct text_list notices;       /* one line each, no repeats */
	char *uts;                      /* four strings, each ended by NUL; NULL if unknown */
	struct rec_clock first_clock;

	struct process **process;       /* in order of appearance; [0] is the main one */
	u32 processes;
	struct pool_list pools;         /* over all processes, by name */
	struct scope total;             /* over all processes */
	struct scope with_devices;      /* and the memory of devices that have their own; like total if there is none */
	i64 devices_then;               /* their part of it */
	struct call_sum *call;          /* longest first; filled by session_end() */
	u32 calls;
	u64 waiters;                    /* threads that waited for devices */
	struct probe_sum *probe;        /* longest by itself first; filled by session_end() */
	u32 probes;
	u64 probe_enters, probe_exits;  /* calls that began and that came to an end */
	u64 short_probes;               /* of these, left out by their rows' min= */
	struct unseen *unseen;          /* by library and path; filled by session_end() */
	u32 unseens;
	struct span *span;              /* in order of birth, filled by session_end() */
	u32 spans;
	u64 large;                      /* the smallest size drawn, after any thinning */

	u64 start, end;                 /* ticks */
	u64 allocs, frees, allocated_bytes, temporary;
	u64 live_bytes, live_blocks;    /* malloc, at the end of each process */
	u64 events;                     /* records taken */
	u64 waited_ticks;               /* programs spent waiting for us */
	u64 bind_ns;                    /* ... looking for functions to wrap and to probe; CPU time */
	u64 probe_sites;                /* functions that were probed, over all processes */
	u64 stack_misses, hard_stacks;
	struct losses losses;
};

static inline u64 sample_rss(const struct rec_sample *s)
{
	return s->rss_anon + s->rss_file + s->rss_shmem;
}

enum curve_kind { CURVE_MALLOC, CURVE_MMAP, CURVE_TOTAL, CURVE_FILES, CURVE_SHARED, CURVES, CURVE_WITH_DEVICES = CURVES };

/* What a writer wants to hear while it happens; NULL: not interested. Times are ticks that
 * session_ns() can already convert. A process is told before its threads and points. */
struct listener {
	void *to;
	void (*begin)(void *to, struct session *s);
	void (*process)(void *to, struct process *p);
	void (*thread)(void *to, struct process *p, struct thread *t);          /* appeared or renamed */
	void (*point)(void *to, struct process *p, enum curve_kind c, u64 ticks, i64 bytes);  /* p NULL: the tree's total */
	void (*sample)(void *to, struct process *p, u64 ticks, const struct rec_sample *now, double cpu_percent);
	void (*run)(void *to, struct process *p, struct thread *t, const struct work_run *r);        /* t NULL: nobody knows */
	void (*call)(void *to, struct process *p, struct thread *t, const struct call *c);      /* t NULL: nobody knows */
	void (*work)(void *to, struct process *p, const struct work *w);
	void (*counter)(void *to, struct process *p, const struct counter_point *c);
	void (*device_point)(void *to, struct process *p, struct device *d, int heap, u64 ticks, i64 bytes); /* -1: all heaps */
	void (*memory)(void *to, struct process *p, struct device_memory *m);           /* born */
	void (*memory_end)(void *to, struct process *p, struct device_memory *m);

	/* Asked, not told: the function at an address of a module; NULL: unknown. */
	void *functions;
	const char *(*function)(void *functions, const struct module *m, u64 address);
};

u64 session_ns(const struct session *s, u64 ticks);

/* The module that pc lay in when its node was made, or NULL. pc is a return address: the call is before it. */
struct module *process_module(const struct process *p, u64 pc, u32 epoch);

#endif
