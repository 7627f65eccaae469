/*
 * probe.h - functions of other libraries that the probe table names: see mlprof/probes.h.
 *
 *   bind_got.c, bind.c   a symbol is referred to --> probe_stub(real, name) --> the GOT entry, dlsym's answer
 *   probe_sites.c        the table; which row a symbol belongs to; a site and a stub for each function
 *   probe_x86_64.S       stub --> trampoline: saves the arguments, calls probe_enter(), the real function, probe_exit()
 *   probe_call.c         what happens at entry and exit, and when an exception passes: counters and one record
 *   probe_fetch.c        the values of that record
 *
 * A call's state lies in the trampoline's own stack frame: recursion, fibers and longjmp need no care.
 */
#ifndef PROBE_H
#define PROBE_H

/* What the trampoline knows of the structs below. */
#define PROBE_FRAME 272                 /* sizeof(struct probe_frame), without what lies above: the caller's */
#define FRAME_REG 128
#define FRAME_RAX 176
#define FRAME_FRET 192
#define FRAME_RET 224
#define FRAME_SITE 240
#define SITE_VALUES 8
#define SITE_BYTES 64
#define PROBE_STUB_BYTES 16
#define PROBE_STUBS 8192

#ifndef __ASSEMBLER__

#include "context.h"
#include <mlprof/probes.h>

struct probe_value {                    /* a fetch, with its base as a place in the frame */
	u16 at;
	u8 type, count, steps;
	u8 above;                       /* bits of a word that are not the number's */
	bool is_signed;
	i32 offset[PROBE_STEPS_MAX];
};

struct probe_rule {                     /* a row, made ready for use */
	const struct probe_value *value;
	u16 entry, all;                 /* values fetched at entry; and at exit too */
	u16 flags;                      /* PROBE_* */
	u16 stack;                      /* words that the real function gets, a multiple of 4 */
	u32 bytes;                      /* room for the values, a multiple of 16 */
	u64 min_ns;
};

struct probe_site {
	void *real;
	u64 bytes;                      /* rule->bytes */
	const struct probe_rule *rule;
	const char *symbol;             /* a copy: the library's own goes with it */
	u64 told;                       /* image that was told of it */
	u32 id, row;
	u64 library;                    /* hash of the path of the one that defines it: others may come to lie there */
	u64 pad;
};

struct probe_frame {
	u64 xmm[8][2];
	u64 reg[6];                     /* rdi rsi rdx rcx r8 r9 */
	u64 rax, r10;
	u64 fret[2][2];                 /* xmm0 xmm1 */
	u64 ret[2];                     /* rax rdx */
	struct probe_site *site;
	u64 begin;
	u32 used;                       /* bytes of values; they lie right below the frame */
	u16 bad;                        /* values that could not be read */
	u16 words;                      /* of the caller's stack that can be read */
	u64 pad;
	u64 rbp, pc;                    /* the caller's */
	u64 stack[];
};

extern struct probe_site probe_sites[];
extern char probe_stubs[];

static_assert(offsetof(struct probe_frame, rbp) == PROBE_FRAME && offsetof(struct probe_frame, reg) == FRAME_REG &&
	      offsetof(struct probe_frame, rax) == FRAME_RAX && offsetof(struct probe_frame, fret) == FRAME_FRET &&
	      offsetof(struct probe_frame, ret) == FRAME_RET && offsetof(struct probe_frame, site) == FRAME_SITE, "frame");
static_assert(sizeof(struct probe_site) == SITE_BYTES && offsetof(struct probe_site, bytes) == SITE_VALUES, "site");
static_assert(PROBE_STUBS == PROBE_SITES_MAX, "stubs");

/* probe_sites.c */
bool probes_start(void);                                /* maps the session's table; false: there is none */
bool probes_in_data(void);                              /* a row wants pointers in data too */
bool probe_wants(const char *name, bool data);          /* a row might be for this symbol */
void *probe_stub(void *real, const char *name, bool data);      /* NULL: leave it alone. With ld.so's lock held */
bool probe_is_stub(const void *code);
void probe_tell(struct context *c, struct probe_site *s, u64 t);

/* probe_fetch.c */
void probe_fetch(struct probe_frame *f, u32 from, u32 to);

/* probe_call.c, called by the trampoline */
i64 probe_enter(struct probe_frame *f);                 /* words of stack to hand on; -1: jump to the real function */
void probe_exit(struct probe_frame *f);
int probe_personality(int version, int actions, u64 class, void *exception, void *context);

/* probe_x86_64.S */
u64 probe_keeping_vectors(u64 (*f)(void *), void *argument);    /* for libc, which may use registers that we do not save */
extern u32 probe_vector_mask, probe_vector_bytes;       /* of XSAVE; 0: the machine has none */

static inline u64 *probe_values(const struct probe_frame *f) { return (u64 *)((u64)f - f->site->bytes); }

#endif
#endif
