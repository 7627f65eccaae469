/*
 * probes_inside.h - what the model keeps of probed functions and of what they told.
 *
 *   model    rows of the probe table, parsed again from their source; names, sums
 *   process  sites: number -> function and its row
 *            handles: what is bound to a number and set on it
 *            libraries: queues and the work in flight on them; blocks of their heaps
 *
 *   record --probes.c--> values, name, arguments --by role--> probe_work.c, probe_memory.c, probe_handles.c
 *                                              `-----------> a call on its thread, a row of the sums
 */
#ifndef PROBES_INSIDE_H
#define PROBES_INSIDE_H

#include "../probe/probe.h"
#include "session.h"
#include "window.h"
#include <uthash.h>

struct model;
struct proc;
struct dev;
struct que;
struct open_work;
struct known_text;
struct nest;

/* A number that a program knows something by: a queue, a command buffer. */
struct handle {
	u64 value;
	bool known;
};

/* ---- work --------------------------------------------------------------------------------- */

enum flight_state { FLIGHT_ENCODED, FLIGHT_RUNNING, FLIGHT_WAITED };    /* WAITED: over, but its times may still be told */

struct flight {
	struct open_work *w;
	struct handle queue, of;        /* of: what is submitted as a whole, such as a command buffer */
	enum flight_state state;
	bool alone;                     /* the library had nothing else to do from when it was handed over on */
	u64 turn;                       /* of the submit that it went with; 0: none yet */
	double start, end;              /* seconds of the device's clock; 0: not told */
};

enum {
	LIBRARY_QUEUES = 32,            /* drawn; a library with more of them shares them */
	LIBRARY_SUBMITS = 64,           /* remembered, for who waits for one of them */
};

struct library_queue {
	u64 handle;
	const char *name;
	struct que *q;
	u64 used;                       /* when, in uses of the library */
};

struct library {
	struct library *next;
	struct dev *dev;
	bool submits, waits, times;     /* it has rows that do */
	bool submitted;                 /* a call did */
	struct flight *flight;          /* oldest first */
	u32 flights, room;
	struct library_queue queue[LIBRARY_QUEUES];
	u32 queues;
	u64 uses;
	struct { u64 of, turn; } submit[LIBRARY_SUBMITS];
	u64 turns;                      /* submits so far */
};

/* ---- of a process ------------------------------------------------------------------------- */

struct probe_site {
	const struct probe_rule *rule;  /* NULL: nobody knows its row */
	char *symbol, *demangled;       /* demangled NULL: it is the same */
	const char *function;           /* without its parameters */
	bool has_rates;
	bool called;
	u64 domain;                     /* of its row: a hash of the name */
	struct library *library;        /* these three: NULL until they are needed */
	struct dev *kernels;
	struct dev *heap;
};

struct heap_block {
	struct { u64 address, heap; } key;
	u64 id;                         /* of its device memory */
	u64 holders;                    /* beside the first one */
	UT_hash_handle hh;
};

struct handle_name {
	u64 handle;
	const char *name;
	const struct probe_rule *by;    /* the bind that gave it; NULL: none */
	UT_hash_handle hh;
};

struct handle_value {
	struct { u64 handle, what; } key;
	u64 value;
	u64 after;                      /* number of the last work or memory that there was then */
	UT_hash_handle hh;
};

/* What a thread's last call of a role and domain did. */
struct done_call {
	struct { u64 thread, role, domain; } key;
	u64 end, address;               /* address: of memory; else 0 */
	UT_hash_handle hh;
};

struct probes {
	struct probe_site **site;       /* by number */
	u32 sites, site_room;
	struct handle_name *names;
	struct handle_name *symbols;    /* functions by address */
	u32 symbols_epoch;
	struct handle_value *values;
	struct library *libraries;
	struct heap_block *blocks;
	struct nest *nests;             /* probe_nest.c */
	struct done_call *done;
	u64 told;                       /* calls */
	u64 numbers;                    /* given to work and memory */
};

/* ---- of all ------------------------------------------------------------------------------- */

struct probe_sum_index {
	struct { const char *name; const struct probe_rule *rule; } key;
	struct probe_sum sum;
	UT_hash_handle hh;
};

struct loaded_library {
	struct { const char *library, *path; } key;
	bool seen;                      /* functions of it were probed, here or elsewhere */
	UT_hash_handle hh;
};

struct probe_table {
	struct buf source;
	struct probe_set *set;          /* NULL until it is asked for */
	bool *found;                    /* by number of a row as it is written: a process has a function for it; NULL: none has */
	struct loaded_library *loaded;
	struct known_text *names;
	struct probe_sum_index *sums;
};

/* ---- a call ------------------------------------------------------------------------------- */

struct probed {
	struct model *m;
	struct proc *p;
	struct stream *s;
	struct probe_site *site;
	const struct probe_rule *rule;  /* NULL: unknown */
	struct probe_values values;
	struct probe_scope scope;
	struct call call;
	bool good;                      /* it came back and did not fail */
	bool unread;                    /* some value could not be read */
	bool late;                      /* what it did is not over when it returns, or others' work was waited for with it */
	bool around;                    /* what it did was told by a call inside of it */
	u64 bytes;
	double flops;
};

bool probed_number(const struct probed *c, const char *key, i64 *value);
struct handle probed_handle(const struct probed *c, const char *key);
bool probed_is(const struct probed *c, const char *key);                /* it is there and not 0 */
u64 probed_new_number(struct probed *c);                                /* for work and memory; a program has none of these */
u64 probed_last_number(const struct probed *c);                         /* the one before */
struct probe_set *probe_set_of(struct model *m);        /* the rows of the recording; NULL: none */
const char *probe_name_once(struct model *m, const char *text, const char *otherwise);  /* otherwise: when there are too many */
struct arg_text probed_args(const struct probed *c, char *to, size_t size, const char *first);

/* probe_handles.c */
void probed_bind(struct probed *c);
void probed_alias(struct probed *c);
void probed_set(struct probed *c);
const char *handle_name(const struct proc *p, u64 handle);              /* NULL: none */
u64 word_hash(const char *word);
bool handle_value(const struct proc *p, u64 handle, const char *what, u64 *value);
u64 handle_set_after(const struct proc *p, u64 handle, const char *what);        /* the last work that was there when it was set; 0: never */
void handle_names_release(struct handle_name **names);
void handles_release(struct probes *all);

/* probe_work.c */
void probed_span(struct probed *c);
void probed_dispatch(struct probed *c);
void probed_submit(struct probed *c);
void probed_wait(struct probed *c);
void probed_copy(struct probed *c);
void probed_time(struct probed *c);
void libraries_close(struct model *m, struct proc *p);
void libraries_release(struct probes *all);

/* probe_memory.c */
void probed_alloc(struct probed *c);
void probed_free(struct probed *c);
void probed_retain(struct probed *c);
void probed_label(struct probed *c, u64 address, const char *label);     /* what is there in the row's heap, if anything is */
void heaps_release(struct probes *all);

/* probe_tokens.c */
void probed_tokens(struct probed *c, struct probe_sum *sum);
/* probe_nested.c */
bool probed_is_paced(const struct probed *c);                             /* it lasts as long as what it does */
bool probed_is_around(const struct probed *c, u64 address);             /* a call inside of it did the same, to the same memory */
void probed_has_done(struct probed *c, u64 address);
void done_calls_release(struct probes *all);

/* probe_unseen.c */
void unseen_found(struct model *m, const struct probe_rule *rule);      /* a function for it */
void unseen_close(struct model *m, const struct proc *p);
void unseen_finish(struct model *m);
void unseen_release(struct model *m);
/* probe_nest.c */
u64 nest_call(struct probed *c);                        /* ticks that it did not spend in other probed calls */
void nest_kernel(struct probed *c, struct dev *d);      /* counts as a kernel of the device if it is not part of another one */
void nests_close(struct model *m, struct probes *all);
void nests_release(struct probes *all);

/* probe_sums.c */
void probed_sum_up(struct probed *c);

#endif
