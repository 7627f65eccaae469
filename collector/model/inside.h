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
#include "devices_inside.h"
#include "intake.h"
#include "live.h"
#include "probes_inside.h"
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

struct node_index {
	u32 hash, node;                 /* node 0: nothing is here */
};

struct link {                           /* a stream's node that has no number yet */
	u64 pc;
	u32 at, epoch;
};

struct row_index {                      /* rows that are not malloc's */
	struct row_key key;
	u32 row;
	UT_hash_handle hh;
};

struct huge_block {                     /* size of a block that does not fit beside its row */
	u64 addr, size;
	UT_hash_handle hh;
};

struct thread_index {
	u32 tid, at;
	UT_hash_handle hh;
};

/* A free that came before its block, or a block that came before the free of the one that lay there: see resolve.c. */
struct early {
	u64 addr, ticks;
	const struct stream *stream;
	bool birth;
};

enum { EARLIES = 64 };

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
	struct early early[EARLIES];
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
	struct held *peak, *tree_peak, *all_peak;       /* by row; all: with devices */
	u32 peak_rows, tree_rows, all_rows;
	struct holder_list tree_held;   /* after its end: its part of the tree's peak ... */
	u64 tree_peaks;                 /* ... with this number */
	struct holder_list all_held;
	u64 all_peaks;
	i64 device_bytes;               /* of devices that count */
	struct devices devices;
	struct probes probes;

	u32 node_room, thread_room, module_room, jit_room, pool_room;
	struct node_index *node_index;          /* node numbers by what they are */
	u32 node_index_size;
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
	u64 ticks, before;              /* when that was said; it was not there before */
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

struct call_index {
	struct { u64 kind; const char *name; } key;     /* name: of call_name */
	struct call_sum sum;
	UT_hash_handle hh;
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
	bool with_devices;              /* the memory of some device counts: the tree has a second sum */
	i64 device_bytes;
	struct curve all_curve;
	struct mark all_mark;
	u64 all_peaks;
	struct known_text *call_names;
	struct call_index *calls;
	struct probe_table probes;
	struct spans spans;
	struct proc *by_image;
	struct pid_index *by_pid;
	struct pool_index *by_pool;
	struct pending *pending;
	u32 process_room, option_room, notice_room, pool_room;
	struct link *chain;             /* scratch: nodes to be named */
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
/* The same for the memory of a device: books_device_use() once, before its first change. */
void books_device_use(struct model *m, struct proc *p, struct dev *d);
void books_device(struct model *m, struct proc *p, struct dev *d, u64 ticks, i64 bytes);
void books_note(struct model *m, struct curve *c, u64 ticks, i64 value);

/* resolve.c: takes records [i, end) until an event or a process that is not known yet. Returns where it stopped. */
void resolve_give_up(struct proc *p);           /* what it waited for does not come any more */
u32 resolve(struct model *m, const struct window *w, u32 i, u32 end, struct pen *pen);

/* rows.c */
u32 row_of(struct proc *p, u32 node, u32 pool);
u64 row_frees(const struct row *r);
struct held row_now(const struct row *r);
enum rows_of { ROWS_HEAP, ROWS_WITH_DEVICES, ROWS_POOL };       /* ROWS_POOL + number: of that pool */
struct holder_list rows_holders(const struct proc *p, const struct held *held, u32 rows, u32 of);
struct holder_list rows_turned(struct proc *p);
struct holder_list holders_lent(struct holder_list l);
void holders_sort(struct holder_list *l);
void holders_free(struct holder_list *l);
void rows_totals(struct proc *p);
void rows_release(struct proc *p);

/* events.c */
void notice_add(struct model *m, const char *text);     /* unless it is there already */

/* nodes.c */
u32 node_of(struct model *m, struct proc *p, struct stream *s, u32 number);
u32 label_of(struct model *m, struct proc *p, struct stream *s, u32 number);
void nodes_release(struct proc *p);
void module_loaded(struct proc *p, u64 ticks, const struct rec_module *r, const char *path, u32 len);
void module_gone(struct proc *p, u64 ticks, u64 start);

/* pools.c */
u32 pool_named(struct model *m, struct proc *p, int kind, const char *path, u32 len);
u32 pool_of_device(struct model *m, struct proc *p, const struct device *d);
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

/* devices.c */
enum { GENERATIONS_MAX = 64 };          /* of forks, through which numbers are looked for */
struct proc *elder(const struct proc *p);
const char *text_once(struct known_text **texts, const char *text, size_t len);
const char *name_text(struct model *m, struct proc *p, u64 id);
struct dev *dev_of(struct model *m, struct proc *p, u64 id);
struct que *que_of(struct model *m, struct proc *p, u64 id);
struct dev *dev_of_library(struct model *m, struct proc *p, const char *name);
struct que *que_of_library(struct model *m, struct proc *p, struct dev *d, const char *name);
u32 site_node(struct model *m, struct proc *p, u64 id);
void name_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void site_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void device_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void queue_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void label_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void device_clock_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void devices_close(struct model *m, struct proc *p, u64 ticks);         /* before the books are closed */
void devices_release(struct proc *p);

/* calls.c */
void call_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
u64 call_begin(const struct proc *p, u64 begin, u64 end);
void call_sum_up(struct model *m, struct stream *s, const struct call *c);
void call_tell(struct model *m, struct proc *p, const struct stream *s, const struct call *c);
void calls_finish(struct model *m);
void calls_release(struct model *m);

/* work.c */
void run_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void work_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void work_done_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void works_called(struct model *m, struct proc *p, const struct call *c);
void works_close(struct model *m, struct proc *p, u64 ticks);
void works_release(struct proc *p);

/* work_place.c */
void work_ready(struct model *m, struct proc *p, struct open_work *w);
void works_place(struct model *m, struct dev *d, bool all);
void works_place_old(struct model *m, struct dev *d);
void work_tell(struct model *m, struct open_work *w);
void work_sum_up(struct model *m, struct dev *d, const struct work *w);

/* device_used.c */
void memory_used_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void memory_used_settle(struct open_memory *o);
void memory_used_keep(const struct open_memory *o);
void device_used_close(struct device *d);
void device_used_release(struct device *d);

/* device_memory.c */
void device_alloc_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void device_free_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
struct open_memory *memory_find(const struct proc *p, u64 id);
void memory_begin(struct model *m, struct proc *p, const struct device_memory *what, struct arg_text text, struct arg_text label);
void memory_end(struct model *m, struct proc *p, struct open_memory *o, u64 ticks);
void memory_label(struct model *m, struct proc *p, u64 id, struct arg_text label);
void memories_close(struct model *m, struct proc *p);
void memories_release(struct proc *p);

/* probes.c */
void probe_rows_early(struct model *m, const struct event *e);
void probe_site_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void probe_event(struct model *m, struct proc *p, struct stream *s, const struct event *e);
void probes_close(struct model *m, struct proc *p);             /* before the process's devices are closed */
void probes_release(struct proc *p);
void probe_table_release(struct model *m);
void probe_sums_finish(struct model *m);                        /* probe_sums.c */

/* events.c */
struct thread *live_thread(struct proc *p, u32 tid);
void thread_call(struct model *m, struct proc *p, u32 tid, const char *name);   /* a name for it that the program did not give */
void event_take(struct model *m, struct image *image, struct stream *s, const struct event *e);

#endif
