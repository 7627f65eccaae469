/*
 * probe.h - functions of other libraries that the probe table names: see mlprof/probes.h.
 *
 *   bind_got.c, bind.c   a symbol is referred to --> probe_stub(real, name) --> the GOT entry, dlsym's answer
 *   probe_sites.c        the table; which row a symbol belongs to; a site and a stub for each function
 *   probe_x86_64.S       stub --> trampoline: saves the arguments, calls probe_enter(), the real function, probe_exit()
 *   probe_x86_64.h       what else is the machine's own: the frame with a call's registers, relocations, vectors
 *   probe_call.c         what happens at entry and exit, and when an exception passes: counters and one record
 *   probe_fetch.c        the values of that record
 *   ggml_ops.c           rows of role builtin: calls that we take part in
 *   probe_tables.c       a call has returned a table of functions: its slots are made to lead to stubs, too; or a function, by its name
 *
 * A call's state lies in the trampoline's own stack frame: recursion, fibers and longjmp need no care.
 */
#ifndef PROBE_H
#define PROBE_H

/* What the trampoline knows of the structs below. */
#define SITE_VALUES 8
#define SITE_BYTES 64
#define PROBE_STUB_BYTES 16
#define PROBE_STUBS 8192

#ifdef __x86_64__
#include "probe_x86_64.h"
#else
#error "probes are for x86-64: another machine needs its own probe_x86_64.h and probe_x86_64.S"
#endif

#ifndef __ASSEMBLER__

#include "context.h"
#include <mlprof/probes.h>

/* How a value is had: what a register holds, the text that it points to; all else takes longer. */
enum probe_way { WAY_LONG, WAY_WORD, WAY_TEXT };

struct probe_value {                    /* a fetch, with its base as a place in the frame */
	u16 at;
	u8 way, type, count, steps;
	u8 bytes;                       /* of a number in memory */
	bool counted;                   /* the value before it says how many there are */
	u64 mask, sign;                 /* bits of a word that are the number's; which of them is its sign, 0: none */
	i32 offset[PROBE_STEPS_MAX];
};

struct probe_rule {                     /* a row, made ready for use */
	const struct probe_value *value;
	u16 entry, all;                 /* values fetched at entry; and at exit too */
	u16 flags;                      /* PROBE_* */
	u16 stack;                      /* words that the real function gets, a multiple of 4 */
	u16 stack_from;                 /* the argument that says how many, if more; 0: none */
	u32 bytes;                      /* room for the values, a multiple of 16 */
	u64 min_ns;
	const struct probe_slot *slot;  /* of a table */
	u32 slots;
};

struct probe_site {
	void *real;
	u64 bytes;                      /* rule->bytes */
	const struct probe_rule *rule;
	const char *symbol;             /* a copy: the library's own goes with it */
	u64 told;                       /* image that was told of it */
	u32 id, row;
	u64 library;                    /* hash of the path of the one that defines it: others may come to lie there */
	union {                         /* mostly NULL */
		const struct builtin *builtin;  /* what we do ourselves in such a call */
		int (*unless)(void);            /* whom to ask whether a call is of interest */
	};
};

extern struct probe_site probe_sites[];
extern char probe_stubs[];

static_assert(sizeof(struct probe_site) == SITE_BYTES && offsetof(struct probe_site, bytes) == SITE_VALUES, "site");
static_assert(PROBE_STUBS == PROBE_SITES_MAX, "stubs");

/* probe_sites.c */
bool probes_start(void);                                /* maps the session's table; false: there is none */
bool probes_in_data(void);                              /* a row wants pointers in data too */
bool probe_wants(const char *name, bool data);          /* a row might be for this symbol */
/* Stubs; NULL: leave it alone. Both after bind_claim(), the first one also with ld.so's lock held. */
void *probe_stub(void *real, const char *name, bool data);
void *probe_stub_of_row(void *real, u32 row);           /* a function in a table, whose row is known */
void *probe_stub_by_name(void *real, const char *name); /* one that a library's own getter found */
bool probes_are_in(const void *code);                   /* functions of its module are probed */
bool probe_is_stub(const void *code);
u32 probes_made(void);                                  /* functions that have a stub, so far */
void probe_tell(struct context *c, struct probe_site *s, u64 t);
struct probe_site *probe_own_site(void *self, const char *name);        /* for probe_note(); NULL: no row has that name. With ld.so's lock held */

/* probe_fetch.c */
void probe_fetch(struct probe_frame *f, u32 from, u32 to);
bool probe_load(u64 *to, u64 from, bool careful);       /* a word of memory */

/* probe_tables.c */
void probe_table(const struct probe_frame *f);          /* a table's row has fetched its values */
void probe_getter(const struct probe_frame *f);         /* so has one that is told a name and answers with a function */

/* probe_call.c, called by the trampoline */
i64 probe_enter(struct probe_frame *f);                 /* words of stack to hand on; -1: jump to the real function */
void probe_exit(struct probe_frame *f);
void probe_note(struct probe_site *s, u64 begin, const u64 *arguments, u32 n);   /* a call of our own, from then to now; at most 6 */
int probe_personality(int version, int actions, u64 class, void *exception, void *context);

/* ggml_ops.c */
void builtin_bound(struct probe_site *s);               /* it is new; with ld.so's lock held */
bool builtin_enter(struct probe_frame *f);              /* true: builtin_exit(), when the real function has returned */
void builtin_exit(struct probe_frame *f);

/* probe_x86_64.S */
u64 probe_keeping_vectors(u64 (*f)(void *), void *argument);    /* for libc, which may use registers that we do not save */
extern u32 probe_vector_mask, probe_vector_bytes;       /* of XSAVE; 0: the machine has none */

static inline u64 *probe_values(const struct probe_frame *f) { return (u64 *)((u64)f - f->site->bytes); }

#endif
#endif
