/*
 * inside.h - a parsed row: what the parts of collector/probe share.
 *
 *   parse.c    lines, symbols, roles, keys           check.c    names and types of a whole row, its fetches in order
 *   expr.c     expressions and texts                 eval.c     values of a call -> numbers and texts
 *   set.c      files, presets, rows of all of them   table.c    the compiled table
 *   choice.c   what a recording takes of a set       embed_default.c    ... by default, made at build time
 */
#ifndef PROBE_INSIDE_H
#define PROBE_INSIDE_H

#include "../util/pool.h"
#include "probe.h"

enum {
	NODES_MAX = 256,                /* of one row */
	PARTS_MAX = 64,                 /* pieces of its texts */
	SLOTS_MAX = 64,
	SLOT_INDEX_MAX = 4096,
	LETTERS_MAX = 8,                /* between [ and ] */
	DEPTH_MAX = 24,                 /* brackets in brackets */
	COST_MAX = 2000,                /* steps to work out one key */
	PREFIX_MIN = 2,                 /* characters before the first wildcard: a row that matches everything is a mistake */
};

enum node_kind { NODE_NUMBER, NODE_FETCH, NODE_TEXT, NODE_WORD, NODE_LETTER, NODE_KEY, NODE_INDEX, NODE_NOT, NODE_MINUS, NODE_BINARY, NODE_CALL };
enum operator { OP_OR, OP_AND, OP_BITAND, OP_EQ, OP_NE, OP_LE, OP_GE, OP_SHL, OP_SHR, OP_LT, OP_GT, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD };
enum function { CALL_NAME, CALL_SYM, CALL_CUR, CALL_MIN, CALL_MAX, CALL_LOG2, CALL_PRODUCT, CALL_LAST, CALL_OR };

#define NONE UINT32_MAX

struct node {
	u8 kind;
	u8 op;                          /* operator or function */
	bool real, pointer;             /* NUMBER: with a point; FETCH: shown in hex */
	u32 a, b;                       /* nodes; FETCH: a is its number; KEY, INDEX: a is the key's, b the element; TEXT: parts a to b */
	i64 whole;
	double number;
	const char *word;               /* WORD: itself; KEY, INDEX: the key's name; CALL cur: what */
	const char *at;                 /* in the source, for messages; not valid once the file is read */
};

/* Pieces of "sgemm {M}x{N}": plain text, or one of what can stand in braces. */
enum part_kind { PART_PLAIN, PART_KEY, PART_SYMBOL, PART_DEMANGLED, PART_FUNCTION, PART_SCOPE, PART_BASE, PART_LETTER, PART_WILD };

struct part {
	u8 kind;
	u32 key;
	const char *text;               /* PLAIN: itself; KEY: the key's name */
	const char *at;
};

struct key {
	const char *name;
	u32 node;
	bool shown;
	const char *at;
};

struct table_slot {
	u32 index;
	const char *name;
	const char *at;
};

struct fetch {
	struct probe_fetch what;
	bool at_exit;
	u8 place;                       /* last in the table: 1 the size of a table, 2 its address; 0: anywhere */
	const char *at;
};

struct probe_body {
	struct node *node;
	struct part *part;
	struct key *key;
	struct table_slot *slot;
	struct fetch *fetch;                            /* in the order of the table: at entry, at exit */
	u32 nodes, parts, keys, slots, fetches, entry_fetches;
	const char *library;                            /* NULL: any */
	const char *unless;                             /* NULL: none */
	const char *domain;
	u32 stack, stack_from;
	u64 min_ns;
	bool entry, data, trust, careful, callstack, sret;
};

struct source {
	char *file;
	const char *preset;
	char *text;
	size_t length;
};

struct probe_set {
	struct probe_rule **rule;
	struct probe_body **body;
	struct source *source;
	struct pool pool;                               /* rules, bodies, sources and all that they point to; of files that failed, too */
	u32 rules, bodies, sources;
	u32 rule_cap, body_cap, source_cap;
};

static inline bool rule_is_wild(const struct probe_rule *rule)
{
	return rule->symbol[rule->prefix];
}

/* ---- one file being read ------------------------------------------------------------------ */

/* A row while it is read: with room for all that it may have, where most have little. */
struct draft {
	struct probe_body body;
	struct node node[NODES_MAX];
	struct part part[PARTS_MAX];
	struct key key[PROBE_KEYS_MAX];
	struct table_slot slot[SLOTS_MAX];
	struct fetch fetch[PROBE_FETCHES_MAX];
};

struct parser {
	struct probe_set *set;
	const char *file, *preset;
	const char *text, *end, *at;
	const char *line_start;         /* of line number `line`, the last one asked for; 0: none yet */
	u32 line;
	struct draft draft;
	struct probe_body *body;        /* of the row: the draft's, then the one that stays */
	int depth;
	bool lettered;                  /* all its symbols have a [...] */
	struct probe_error *error;
	bool failed;
};

/* The first error counts. Always returns false. */
bool parse_fail(struct parser *p, const char *at, const char *format, ...) __attribute__((format(printf, 3, 4)));
bool parse_blanks(struct parser *p);                    /* over blanks, comment and joined lines; false: the row ends here */
const char *parse_kept(struct parser *p, const char *text, size_t length);      /* a copy that lives as long as the set */
const char *parse_quote(const struct parser *p, const char *at, char to[static 40]);   /* 'what stands there' or "the end of the line" */
bool parse_file(struct parser *p);

static inline char parse_peek(const struct parser *p, size_t ahead)
{
	return (size_t)(p->end - p->at) > ahead ? p->at[ahead] : 0;
}

/* Length of the word of letters, digits and _ that starts here with a letter or _. */
size_t parse_word(const struct parser *p);

/* A value: an expression, "text", {text}; with `words` also a bare word that is its own text. The node, NONE: failed. */
u32 expr_value(struct parser *p, bool words);

/* The row is read: names become keys, types fit, fetches get their places. */
bool check_row(struct parser *p, enum probe_role role, const char *at);

#endif
