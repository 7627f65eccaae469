/*
 * symbols_parts.h - what the files that make up `symbols` share.
 *
 *   symbols.c         which addresses are wanted, what becomes of them
 *   symbols_name.c    demangling; which functions and modules are not whose memory it is
 *   symbols_file.c    ELF files: build ids, one sorted table of functions, where debug information is
 *   symbols_dwarf.c   lines and inlined functions
 *
 *   process node --> spot (object, address) --> frames
 *                            `-- object: a file as it was when it was mapped
 */
#ifndef SYMBOLS_PARTS_H
#define SYMBOLS_PARTS_H

#include "symbols.h"

#include <uthash.h>

/* A function's name, once. */
struct name {
	char *linkage;
	char *function;                 /* may be the same pointer */
	bool internal;
	UT_hash_handle hh;
};

struct text {
	UT_hash_handle hh;
	char at[];
};

/* A distinct address of an object. */
struct spot {
	struct { struct object *object; u64 addr; } key;
	const struct module *module;
	struct frame *at;               /* NULL until resolved */
	u32 count, number;
	UT_hash_handle hh;
};

/* A return address of a process, and when: nodes have few of these, and to find module and spot again takes long. */
struct place {
	u64 pc;
	u32 epoch;
	struct spot *spot;              /* NULL: nothing here */
};

/* One function around an address, as debug information has it: the real one first, then those inlined, inwards. */
struct layer {
	u32 spot;                       /* index into the list that was asked for */
	bool inlined;
	const struct name *name;
	u64 declared;                   /* entry of a name without its namespace, 0: the name is whole */
	const char *call_file;          /* where the function around it calls it, if inlined */
	u32 call_line;
};

struct layers {
	struct layer *at;
	u32 count, room;
};

struct line {
	const char *file;
	u32 line;
};

struct code_file;                       /* symbols_file.c */
struct debug_info;                      /* symbols_dwarf.c */

struct object {
	char *path;                     /* NULL: code of no file */
	const char *base;               /* last part of path */
	u8 build_id[24];
	u32 build_len;
	bool internal, tried;
	struct code_file *file;         /* NULL: none that is to be believed */
	struct spot **pending;
	u32 pendings, room;
	UT_hash_handle hh;
	char key[];                     /* build id in hex, path */
};

struct process_memo {
	struct spot **spot_of;          /* by node */
	u32 nodes;
	struct place *place;            /* by hash of address and epoch, half of it empty */
	u32 places, place_room;
	struct object **object_of;      /* by module */
	u32 modules;
	struct object *nowhere;
};

/* A function that nobody knows: its addresses come one after the other. */
struct unnamed {
	const struct object *object;
	u64 start;
	const char *near;               /* the symbol before it */
	bool near_internal;
	const char *text;
};

struct symbols {
	bool debuginfod;
	struct name *names;
	struct text *texts;
	struct spot *spots;
	struct object *objects;
	struct process_memo *memo;      /* by process index */
	u32 memos;
	i64 work;                       /* what may still be spent on debug information: see symbols_dwarf.c */
	struct unnamed last_unnamed;
	u64 unnamed, unlined;
};

/* symbols_name.c */
const struct name *name_of(struct symbols *y, const char *linkage);
const char *text_of(struct symbols *y, const char *text);
bool module_is_internal(const char *base);
void names_free(struct symbols *y);

/* symbols_file.c */
struct found {
	const char *name;               /* NULL: no symbol at or before the address */
	bool inside;                    /* the address lies in that function */
	u64 offset;
};

struct code_file *code_file_open(struct symbols *y, const struct object *o);
struct found code_file_find(const struct code_file *f, u64 addr);
/* Where the function around an address begins; the address itself if that is not known. */
u64 code_file_start(const struct code_file *f, u64 addr);
struct debug_info *code_file_debug(const struct code_file *f);
void code_file_free(struct code_file *f);

/* symbols_dwarf.c; `elf` stays the caller's and must live as long */
struct Elf;
struct debug_info *debug_open(struct symbols *y, struct Elf *elf);
/* `spot` is sorted by address; `line` has a place for each; layers come sorted by spot, real function first. False if
 * the work was cut short. */
bool debug_resolve(struct symbols *y, struct debug_info *d, struct spot *const *spot, u32 count,
		   struct line *line, struct layers *layers);
void debug_free(struct debug_info *d);

#endif
