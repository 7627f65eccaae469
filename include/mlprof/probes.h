/*
 * probes.h - the compiled probe table: what the library must know of the probe files.
 *
 *   file "probes" in the session directory:   probe_head | rows | fetches | texts, filled up to 8 bytes | slots
 *
 * Written by the collector before the program starts, mapped read-only by the library. The library matches symbols and
 * fetches raw values. What they mean (roles, names, arithmetic) only the collector knows, from the rows' source.
 */
#ifndef MLPROF_PROBES_H
#define MLPROF_PROBES_H

#include "wire.h"

enum {
	PROBE_VERSION = 2,
	PROBE_ROWS_MAX = 8192,
	PROBE_FETCHES_MAX = 16,         /* of one row */
	PROBE_STEPS_MAX = 4,
	PROBE_ARRAY_MAX = 8,
	PROBE_STRING_MAX = 240,         /* bytes; what is longer is cut. Names of C++ kernels are long */
	PROBE_VALUES_MAX = 768,         /* bytes that a row's values may take, strings at their longest: checked by the compiler */
	PROBE_STACK_DEFAULT = 16,
	PROBE_STACK_MAX = 128,          /* words */
	PROBE_SITES_MAX = 8192,         /* functions that are probed in one process */
};

#define PROBE_MAGIC 0x4250504dU          /* "MPPB" */
#define PROBE_STRING_BAD 0xffffu         /* instead of a length: it could not be read */

struct probe_head {
	u32 magic, version;
	u32 rows, fetches, text_bytes;
	u32 slots;
};

enum {
	PROBE_GLOB = 1,                 /* the symbol holds '*' or '?' */
	PROBE_ENTRY = 2,                /* no duration, no return value: the real function is jumped to */
	PROBE_CALLSTACK = 4,
	PROBE_DATA = 8,                 /* pointers in data too, not only calls through PLT and GOT */
	PROBE_CAREFUL = 16,             /* memory is read by process_vm_readv: the row is not known to be right */
	PROBE_TABLE = 32,               /* the last fetch is the address of an array of functions: its slots are to be replaced, once */
	PROBE_SIZED = 64,               /* ... and the fetch before it the array's bytes: slots beyond them are not there */
	PROBE_MODULE = 128,             /* the symbol is the name of a file: only the collector has a use for it */
	PROBE_BUILTIN = 256,            /* the library does something itself in such a call, and records nothing */
	PROBE_GETTER = 512,             /* fetches: at entry the name of a function, at exit the place where the call has put it */
	PROBE_UNLESS = 1024,            /* the row has an `unless` */
};

/* Functions that it can do so for, and the name that it calls an operation of ggml by: (tensor, name of the operation, flops). */
#define PROBE_BUILTINS "ggml_backend_sched_new", "ggml_backend_sched_set_eval_callback", "ggml_backend_sched_free"
#define PROBE_GGML_OP "ggml.op"

struct probe_row {
	u32 symbol;                     /* its text: a name or a glob */
	u32 prefix;                     /* bytes of it before the first wildcard */
	u32 library;                    /* text: glob for the file name of the library that defines it; PROBE_ANY: any */
	u32 fetch;                      /* the first of its fetches; those at entry come first */
	u16 fetches, entry_fetches;
	u16 stack;                      /* words of the caller's stack that the real function gets */
	u16 flags;                      /* PROBE_* */
	u64 min_ns;                     /* a shorter call is only counted */
	u32 unless;                     /* text: a function of the same library; where it returns something, the call is let through unseen. Or PROBE_ANY */
	u32 stack_from;                 /* 1 to 6: that argument says how many words of the stack there are, if these are more; 0: none does */
};

/* Function number `index` of the table that row `table` finds is probed by `row`, whose symbol is the name the probe file gave it. Slots are
 * in the order of their tables. */
struct probe_slot {
	u32 table, index, row;
};

#define PROBE_ANY UINT32_MAX

enum probe_from { FROM_ARG, FROM_FARG, FROM_STACK, FROM_RETURN, FROM_FRETURN };
enum probe_type { TYPE_U8, TYPE_U16, TYPE_U32, TYPE_U64, TYPE_S8, TYPE_S16, TYPE_S32, TYPE_S64, TYPE_F32, TYPE_F64, TYPE_STRING, TYPE_STRV, PROBE_TYPES };

/*
 * A value: the base word, then `steps` times memory.
 *   numbers:  no step: the word itself, cut to its type. Else all steps but the last load a pointer from value + offset,
 *             the last one loads `count` elements of the type from there.
 *   STRING:   bytes up to NUL at (all steps but the last load a pointer; the last only adds its offset; no step: at the word)
 *   STRV:     the same place holds a pointer and a length (a string view, a std::string); a length of SIZE_MAX: up to NUL
 *             NULL for either is a text of length 0
 * FROM_ARG counts from 1: 1 to 6 are registers, 7 and up the words of the caller's stack from 1 on.
 */
struct probe_fetch {
	u8 from, index;
	u8 type, count;
	u8 steps;
	u8 counted;                     /* not 0: the value before this one says how many elements there are; no more than `count` are read */
	u8 pad[2];
	i32 offset[PROBE_STEPS_MAX];
};

/*
 * The text of a `probe` record: values one after another, without gaps.
 *   numbers: count x 8 bytes (those that were not read are 0), widened to 64 bits with their sign; F32 as its 4 bytes, then 4 of 0
 *   strings: u16 length, then that many bytes
 * A number that could not be read is 0 and has its bit in PROBE_BAD().
 */
enum { PROBE_UNWOUND = 1 };              /* left by an exception or cancellation */
#define PROBE_SITE(word)  ((u32)(word))
#define PROBE_LEFT(word)  ((u32)((word) >> 32) & 0xffff)
#define PROBE_BAD(word)   ((u32)((word) >> 48))
#define PROBE_WORD(site, left, bad) ((u64)(u32)(site) | (u64)(left) << 32 | (u64)(bad) << 48)

#endif
