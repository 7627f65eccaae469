/*
 * symbols.h - addresses become names: function, file, line, inlined frames.
 *
 * Done once for each distinct (module, address), from .symtab/.dynsym (sorted and swept, because
 * dwfl_module_addrinfo scans linearly), DWARF lines and inlined frames through libdw, and
 * /tmp/perf-PID.map names for JIT code. Nothing is resolved before it is asked for, but
 * symbols_prepare() takes all addresses at once, which is the fast way.
 */
#ifndef SYMBOLS_H
#define SYMBOLS_H

#include "session.h"

struct symbols;

/* One source frame. An address has one or more: innermost (inlined) first, the real function last. */
struct frame {
	const char *function;           /* demangled; "libfoo.so+0x1234 (bar+0x34)" if nobody knows: where it begins and
	                                   the nearest symbol */
	const char *linkage;            /* as in the symbol table, may equal function */
	const char *file;               /* NULL if unknown */
	u32 line;                       /* 0 if unknown */
	bool named;                     /* function came from a symbol, debug info or a JIT map */
	bool internal;                  /* of libc, libstdc++, ld.so, an allocator or mlprof: not whose memory it is */
};

struct frames {
	const struct frame *at;
	u32 count;
	const struct module *module;    /* NULL: none or JIT */
	u64 rel_pc;                     /* address of the call in the file's own terms */
	u32 number;                     /* of this address: equal ones are the same frames; 0: no frame at all */
};

struct symbols *symbols_new(bool debuginfod);
void symbols_prepare(struct symbols *y, const struct process *p, const u32 *nodes, u32 count);  /* and their parents */
struct frames symbols_frames(struct symbols *y, const struct process *p, u32 node);
/* The first frame outside libc, libstdc++ and allocator internals, walking outwards; never NULL. */
const struct frame *symbols_owner(struct symbols *y, const struct process *p, u32 node, const struct module **module);
/* The function at an address of a module, from its symbol table; NULL: nobody knows. */
const char *symbols_function(struct symbols *y, const struct module *m, u64 address);
u64 symbols_unnamed(const struct symbols *y);    /* distinct addresses that stayed without a name */
u64 symbols_unlined(const struct symbols *y);    /* addresses whose debug information was too much to read */
void symbols_free(struct symbols *y);
/* A linkage name as people read it, with or without the function's parameters; NULL: it is not mangled. To be freed. */
char *symbols_demangled(const char *linkage, bool parameters);

#endif
