/*
 * probe.h - probe files: text -> rows -> the table that the library maps -> values of a call -> numbers and names.
 *
 *   probes_choose("+blas,my.probes")  all that a recording needs; by default it is there already, else these three make it:
 *   probes_select("+blas,my.probes")  presets and files, parsed: file:line:column: expected ...
 *   probes_compile()                  file "probes" of the session directory (mlprof/probes.h)
 *   probes_source()                   what the stream keeps (record probe_rows); probes_add_source() reads it again
 *   probe_read()                      text of a `probe` record -> struct probe_values
 *   probe_number(), probe_text()      a key of the row, from these values and what the model knows
 *
 * mlprof-probes(5) describes the language. The number of a row is its index in the table and in the set.
 * Which row a symbol gets: the one that stands first. In each file those that name it come before those with a wildcard.
 */
#ifndef PROBE_H
#define PROBE_H

#include "../util/buf.h"

#include <mlprof/probes.h>
#include <stdbool.h>

enum probe_role {
	ROLE_SPAN,              /* a call; name, flops, bytes; kernel: if it is not 0, it computes and is among the kernels */
	ROLE_DISPATCH,          /* ... that puts a kernel on a queue; name, queue, of, wait, gx gy gz, lx ly lz, flops, bytes */
	ROLE_SUBMIT,            /* ... that sends what was put on a queue to the device; queue; of: a part of it, such as a command buffer; wait: if it
				 * is not 0, the call waits for the end, too */
	ROLE_WAIT,              /* ... that blocks until the queue is through; queue, of; over: if it is 0, the queue is not, the call only looked; until: as far as it
				 * was when a queue was set on this handle */
	ROLE_COPY,              /* ... that moves bytes, dir, queue, of, wait */
	ROLE_ALLOC,             /* heap, ptr, size, label; own: other memory than the program's heap; in: the address of an alloc that it lies in; was: of one
				 * that it takes the place of */
	ROLE_FREE,              /* heap, ptr; any: it need not be one that an alloc has made */
	ROLE_RETAIN,            /* heap, ptr: one more free is needed to end it */
	ROLE_COUNTER,           /* value, name, unit */
	ROLE_MARK,              /* name: a moment */
	ROLE_THREAD,            /* the calling thread gets a name */
	ROLE_BIND,              /* key gets a name, and all other numbers of the row; heap: an alloc there with the address key is labelled so, too */
	ROLE_ALIAS,             /* key is called as from is */
	ROLE_SET,               /* val is the current object of key (as=WORD: one of several kinds) */
	ROLE_TIME,              /* of: as a dispatch or submit had it; start, end in seconds of the device's clock */
	ROLE_TABLE,             /* at: an array of functions; its slots have names, which rows can probe. Nothing to show. */
	ROLE_BUILTIN,           /* mlprof's own code takes part in the call (PROBE_BUILTINS). Nothing to show. */
	ROLE_GETTER,            /* symbol: the name of a function; at: the place where the call put it. Nothing to show. */
	ROLE_MODULE,            /* no function: a file that holds the library in one piece, so that nothing of it may be seen */
	PROBE_ROLES
};

extern const char *const probe_role_name[PROBE_ROLES];

/* Codes of `dir`, when a row fetches it: those of cudaMemcpyKind, but for the last ones. */
enum probe_direction { DIRECTION_H2H, DIRECTION_H2D, DIRECTION_D2H, DIRECTION_D2D, DIRECTION_FILL, DIRECTION_UNKNOWN };

extern const char *const probe_direction_name[DIRECTION_UNKNOWN];

enum {
	PROBE_KEYS_MAX = 40,            /* of a row */
	PROBE_NAME_MAX = 256,           /* bytes of a text, with its NUL */
};

struct probe_rule {
	enum probe_role role;
	const char *symbol;             /* name or glob; of "a|b" and "[cd]e" the one of this row */
	u32 prefix;                     /* its bytes before the first wildcard */
	char letter;                    /* the one that "[cd]" stands for here; 0: none */
	const char *file;               /* as the user named it; of a preset "blas.probes" */
	u32 line;
	u32 number;                     /* of the row as it is written: "a|b" is one */
	const char *preset;             /* NULL: from a user's file */
	const char *domain;             /* dom=, else the name of the preset or of the file without its ending */
	u64 min_ns;
	bool entry;                     /* no duration, no return value */
	bool callstack;
	const struct probe_body *body;
};

struct probe_set;

struct probe_error {
	char text[512];                 /* file:line:column: expected ... */
};

/* ---- sets --------------------------------------------------------------------------------- */

struct probe_set *probes_new(void);
void probes_free(struct probe_set *set);
/* False: `error` says where and why, and the set is as before. A preset's rows are trusted, `preset` is its name or NULL. */
bool probes_add(struct probe_set *set, const char *file, const char *text, size_t length, const char *preset, struct probe_error *error);
/* The value of --probes: +PRESET, -PRESET, none, all or the name of a file, with commas between; NULL: the presets that are on
 * by default. Rows of files come before those of presets. */
bool probes_select(struct probe_set *set, const char *words, struct probe_error *error);
u32 probes_count(const struct probe_set *set);
const struct probe_rule *probes_rule(const struct probe_set *set, u32 row);      /* NULL: no such row */

bool probes_has_preset(const struct probe_set *set, const char *name);          /* it was chosen, though it may have no rows */
bool probes_compile(const struct probe_set *set, struct buf *to);               /* false: no memory */
/* Source of all rows, with lines "#file NAME" before those of each file; read back, it gives the same rows and numbers. */
void probes_source(const struct probe_set *set, struct buf *to);
bool probes_add_source(struct probe_set *set, const char *text, size_t length, struct probe_error *error);

/* ---- choices ------------------------------------------------------------------------------ */

/* What a recording takes with it. */
struct probe_choice {
	const char *table, *source;     /* of probes_compile() and probes_source(); NULL: there are no rows */
	size_t table_bytes, source_bytes;
	bool iree;                      /* this preset is among them: it has no rows */
};

extern const struct probe_choice probe_choice_default;  /* of the presets that are on by default; made when mlprof is built */
/* Words as for probes_select(). False: `error` says why, and nothing is to be released. */
bool probes_choose(const char *words, struct probe_choice *to, struct probe_error *error);
void probes_choice_release(struct probe_choice *choice);

/* ---- presets ------------------------------------------------------------------------------ */

struct probe_preset {
	const char *name;               /* "blas" */
	const char *text;
	size_t length;
};

extern const struct probe_preset probe_presets[];       /* by name; ends with a NULL name */
const struct probe_preset *probe_preset_find(const char *name, size_t length);
bool probe_preset_on(const struct probe_preset *preset);                        /* by default: its head says so */
void probe_preset_purpose(const struct probe_preset *preset, char *to, size_t size);    /* the first line of its head */

/* ---- values of a call --------------------------------------------------------------------- */

struct probe_value {
	u8 type, count;                 /* TYPE_* */
	bool known;
	bool more;                      /* elements than there is room for */
	u16 length;
	const char *text;               /* strings; not ended by NUL */
	u64 number[PROBE_ARRAY_MAX];    /* as the record has them */
};

struct probe_values {
	u32 count;
	struct probe_value at[PROBE_FETCHES_MAX];
};

/* Text of a record `probe`, PROBE_BAD() of its word. Values point into the text. Values that are missing at the end (a call that
 * was left by an exception) are unknown. False: it cannot be from this row. */
bool probe_read(const struct probe_rule *rule, const void *text, u32 length, u32 bad, struct probe_values *values);

/* What expressions may ask of the model; any of the functions may be NULL or answer "unknown". */
struct probe_scope {
	const struct probe_values *values;
	const char *symbol;             /* of the function that was called */
	const char *demangled;          /* NULL: the same */
	void *to;
	const char *(*name_of)(void *to, u64 handle);                           /* name(E): bound to it; NULL: unknown */
	bool (*current)(void *to, u64 handle, const char *what, u64 *value);    /* cur(E), cur(E,what); what is "" without it */
	const char *(*symbol_of)(void *to, u64 address);                        /* sym(E): the function at an address */
};

/* ---- keys --------------------------------------------------------------------------------- */

u32 probe_keys(const struct probe_rule *rule);                  /* in the order of the row */
const char *probe_key(const struct probe_rule *rule, u32 i);
bool probe_key_shown(const struct probe_rule *rule, u32 i);     /* not one that the role knows: an argument to show */
bool probe_key_is_text(const struct probe_rule *rule, u32 i);   /* else probe_number() may answer */
bool probe_has(const struct probe_rule *rule, const char *key);
const char *probe_rate_unit(const char *key);                   /* of amounts whose sum over the time is shown; NULL: it is no such key */

/* False: no such key, no number, or not known. `whole` is the value cut to an integer; each may be NULL. */
bool probe_number(const struct probe_rule *rule, const char *key, const struct probe_scope *scope, double *value, i64 *whole);
/* Any key as text; an array as 4x3x1x1, a pointer in hex. False: no such key or not known; `to` is then empty. */
bool probe_text(const struct probe_rule *rule, const char *key, const struct probe_scope *scope, char *to, size_t size);
/* when= and ok=: true if the row has no such key or it is not 0; unknown is false. */
bool probe_holds(const struct probe_rule *rule, const char *key, const struct probe_scope *scope);
/* name=, or the function's name without its parameters. Always something. */
void probe_name(const struct probe_rule *rule, const struct probe_scope *scope, char *to, size_t size);
enum probe_direction probe_direction(const struct probe_rule *rule, const struct probe_scope *scope);

#endif
