/*
 * inside.h - what the parts of the model know of each other and nobody else does.
 *
 *   window -> books.c    blocks are born and die: entries in the journal, rows, curves, peaks
 *         `-> events.c   everything else, one function a record
 *
 *   struct proc          a process as session.h shows it, and what is needed to keep its books
 *   row                  (stack, pool) of a process: what went in and what came out
 *   journal              the changes since the rows were last copied: a peak's rows are today's rows minus
 *                        the changes since, so nothing has to be saved while memory grows
 */
#ifndef INSIDE_H
#define INSIDE_H

#include "../util/array.h"
#include "clock.h"
#include "curve.h"
#include "intake.h"
#include "live.h"
#include "ranges.h"

enum { IN, OUT, OUT_TEMPORARY = 3, WAYS };

struct row {
	u64 bytes[2];                   /* IN, OUT */
	u64 count[WAYS];
	u32 node, pool;
};

struct row_key {
	u32 node, pool;
};

struct row_index {                      /* rows that are not malloc's */
	struct row_key key;
	u32 row;
	UT_hash_handle hh;
};

struct held {                           /* by a row, at a peak */
	i64 bytes, blocks;
};

/* Where in the journal a peak was; settled: the rows of that moment have been copied. */
struct mark {
	u64 at;
	bool settled;
};

struct huge_block {                     /* size of a block that does not fit beside its row */
	u64 addr, size;
	UT_hash_handle hh;
};

struct thread_index {
	u32 tid, at;
	UT_hash_handle hh;
};

/* A free that came before its block: see resolve.c. */
struct early_free {
	u64 addr, ticks;
	const struct stream *stream;
};

enum { EARLY_FREES = 64 };

struct image_key {
	u64 born;
	u32 pid, zero;
};

struct proc {
	struct process p;               /* first: struct process * is struct proc * */
	struct image_key key;
	bool told, closed;
	bool said_exit;
	int exit_status;
	char *exec_path;                /* it said it would become this */

	struct live live;
	struct huge_block *huge;
	struct early_free early[EARLY_FREES];
	u32 earlies;
	struct ranges ranges;
	u64 mappings;
	i64 files, shared;              /* bytes */
	struct curve curve[CURVES];

	struct row *row;
	u32 rows, row_room;
	struct row_index *row_index;
	u32 *malloc_row;                /* by node: row + 1, or 0 */
	u32 malloc_row_room;
	struct mark mark;
	struct held *peak, *tree_peak;  /* by row */
	u32 peak_rows, tree_rows;
	struct holder_list tree_held;   /* after its end: its part of the tree's peak ... */
	u64 tree_peaks;                 /* ... with this number */

	u32 node_room, thread_room, module_room, jit_room, pool_room;
	u32 *node_index, node_index_size;       /* node numbers by what they are */
	struct thread_index *thread_index;
	u32 *tree_pool;                 /* by pool: index into session.pools */
	u32 tree_pool_room;
	u32 *loaded;                    /* modules that are there, by address */
	u32 loads, loaded_room;
	u32 epoch;

	struct rec_sample sample;       /* the last one */
	u64 sample_ticks;

	/* of the current segment, when several processes move in it */
	struct swing swing;
	u64 max_at;
	bool moving;

	UT_hash_handle hh;
};

/* The bits of a plain record, which is a block; part of a mapping is none. */
enum { WHAT_OUT = REC_FREE, WHAT_TEMPORARY = REC_TEMPORARY, WHAT_BLOCK = REC_PLAIN, WHAT_WAY = 3, WHAT_PROCESS_SHIFT = 3 };

struct entry {
	u64 size;
	u32 row;
	u32 what;                       /* WHAT_* | process << 3 */
};

/* A change of a malloc total. */
struct step {
	i64 bytes;
	u64 ticks;
};

enum { JOURNAL_ENTRIES = 1 << 18, SLICE = 1 << 11, SLICE_ENTRIES = 4 * SLICE };     /* a record makes at most 4 */

struct journal {
	struct entry *entry;            /* JOURNAL_ENTRIES */
	u64 base;                       /* number of the first one */
	u32 count;
	bool needed;                    /* some peak is not settled */
	struct step *step;              /* of the newest entries, which the sums and curves do not know yet */
};

/* Writes to the journal, one step for each entry. */
struct pen {
	struct entry *entry;
	struct step *step;
	struct proc *first;             /* whose blocks they are ... */
	bool several;                   /* ... unless they are of several processes */
};

struct span_key {
	u64 id;                         /* address of a block or number of a mapping */
	u32 process, is_mapping;
};

struct open_span {
	struct span_key key;
	struct span span;
	UT_hash_handle hh;
};

struct spans {
	struct open_span *open;
	struct span *done;
	u32 opens, dones, done_room;
};

struct pending {                        /* a process that was made but said nothing yet */
	u32 pid, parent;                /* pid, index of the process */
	u64 ticks;
	char *path;
	bool followed;
	UT_hash_handle hh;
};

struct pid_index {
	u32 pid;
	struct proc *proc;              /* the newest image */
	UT_hash_handle hh;
};

struct pool_index {
	u32 at;
	UT_hash_handle hh;
	char name[];
};

struct model {
	struct session s;               /* first: struct session * is struct model * */
	struct listener listener;
	bool begun, ended;
	struct clock clock;
	struct curves curves;
	struct curve tree_curve;
	struct journal journal;
	struct mark mark;               /* of the tree's peak */
	u64 tree_peaks;
	struct spans spans;
	struct proc *by_image;
	struct pid_index *by_pid;
	struct pool_index *by_pool;
	struct pending *pending;
	u32 process_room, option_room, notice_room, pool_room;
	u32 *chain;                     /* scratch: nodes to be named */
	u32 chain_room;
	struct proc **moving;           /* scratch: processes of a segment */
	u32 moving_room;
};

static inline struct proc *proc_at(struct model *m, u32 index)
{
	return (struct proc *)m->s.process[index];
}

/* books.c */
void books_init(struct model *m);
void books_release(struct model *m);
void books_window(struct model *m, const struct window *w);
void books_settle(struct model *m);
/* One change of a mapping's bytes, written down; books_maps() then moves the sums of a whole event at once. */
void books_enter(struct model *m, struct proc *p, u32 row, u64 bytes, u32 what);
void books_maps(struct model *m, struct proc *p, u64 ticks, u32 pool, i64 bytes);
void books_close(struct model *m, struct proc *p, u64 ticks);

/* resolve.c: takes records [i, end) until an event or a process that is not known yet. Returns where it stopped. */
void resolve_give_up(struct proc *p);           /* what it waited for does not come any more */
u32 resolve(struct model *m, const struct window *w, u32 i, u32 end, struct pen *pen);

/* rows.c */
u32 row_of(struct proc *p, u32 node, u32 pool);
u64 row_frees(const struct row *r);
struct held row_now(const struct row *r);
struct holder_list rows_holders(const struct proc *p, const struct held *held, u32 rows);
struct holder_list rows_all(const struct proc *p);
void holders_sort(struct holder_list *l);
void rows_totals(struct proc *p);
void rows_release(struct proc *p);

/* nodes.c */
u32 node_of(struct model *m, struct proc *p, struct stream *s, u32 number);
u32 label_of(struct model *m, struct proc *p, struct stream *s, u32 number);
void nodes_release(struct proc *p);
void module_loaded(struct proc *p, u64 ticks, const struct rec_module *r, const char *path, u32 len);
void module_gone(struct proc *p, u64 ticks, u64 start);

/* pools.c */
u32 pool_named(struct model *m, struct proc *p, int kind, const char *path, u32 len);
void pools_init(struct model *m, struct proc *p);
void pool_move(struct model *m, struct proc *p, u32 pool, i64 bytes, u64 ticks);
void pools_finish(struct model *m);
void pools_release(struct model *m);

/* maps.c */
void map_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void unmap_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void protect_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void remap_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void maps_release(struct proc *p);

/* spans.c */
void span_open(struct model *m, struct span_key key, struct span span);
void span_close(struct model *m, struct span_key key, u64 ticks);
void spans_finish(struct model *m);
void spans_release(struct model *m);

/* procs.c */
struct proc *proc_of_image(struct model *m, struct image *image, u64 ticks);
struct proc *proc_by_pid(struct model *m, u32 pid);
void proc_tell(struct model *m, struct proc *p);
void proc_close(struct model *m, struct proc *p, u64 ticks);
void child_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void exec_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void exec_failed_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void hello_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void procs_finish(struct model *m);
void procs_release(struct model *m);

/* events.c */
void event_take(struct model *m, struct image *image, struct stream *s, const struct event *e);

#endif
