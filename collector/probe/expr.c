/*
 * expr.c - reads one value of a row: fetches in the kernel's fetch-argument style, arithmetic, texts with names in braces.
 *
 *   $arg3:s32   +16($arg1):s64[4]   +0($arg1):ptr@ret   2*M*N*K   name(cur($arg1))   "gemm {M}x{N}"
 */
#include "inside.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>

/* ---- nodes -------------------------------------------------------------------------------- */

static u32 add_node(struct parser *p, struct node n)
{
	struct probe_body *b = p->body;

	if (b->nodes >= NODES_MAX) {
		parse_fail(p, n.at, "expected a shorter row: this one has more than %d values and operators", NODES_MAX);
		return NONE;
	}
	b->node[b->nodes] = n;
	return b->nodes++;
}

static u32 fail(struct parser *p, const char *at, const char *expected)
{
	char there[40];

	parse_fail(p, at, "expected %s, not %s", expected, parse_quote(p, at, there));
	return NONE;
}

static bool skip_char(struct parser *p, char c)
{
	if (parse_peek(p, 0) != c || p->at >= p->end)
		return false;
	p->at++;
	return true;
}

static bool is_word(const struct parser *p, size_t length, const char *word)
{
	return strlen(word) == length && !memcmp(p->at, word, length);
}

/* ---- numbers ------------------------------------------------------------------------------ */

static u32 number_node(struct parser *p)
{
	const char *start = p->at;
	size_t length = 0;
	char text[48], *end;

	while (isalnum((unsigned char)parse_peek(p, length)) || parse_peek(p, length) == '.' ||
	       ((parse_peek(p, length) == '-' || parse_peek(p, length) == '+') && length && (start[length - 1] | 32) == 'e' &&
		!(start[0] == '0' && length > 1 && (start[1] | 32) == 'x')))
		length++;
	if (length >= sizeof(text))
		return fail(p, start, "a number of fewer digits");
	memcpy(text, start, length);
	text[length] = 0;
	errno = 0;
	struct node n = { .kind = NODE_NUMBER, .at = start };
	unsigned long long whole = strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);

	if (!*end && !errno && whole <= INT64_MAX) {
		n.whole = (i64)whole;
		n.number = (double)whole;
	} else {
		n.number = strtod(text, &end);
		n.real = true;
		if (*end)
			return fail(p, start, "a number such as 2, 0.5, 1e9 or 0x1f");
	}
	p->at += length;
	return add_node(p, n);
}

/* ---- fetches ------------------------------------------------------------------------------ */

static const struct type {
	const char *name;
	u8 type;
	bool pointer;
} types[] = {
	{ "u8", TYPE_U8, 0 }, { "u16", TYPE_U16, 0 }, { "u32", TYPE_U32, 0 }, { "u64", TYPE_U64, 0 },
	{ "s8", TYPE_S8, 0 }, { "s16", TYPE_S16, 0 }, { "s32", TYPE_S32, 0 }, { "s64", TYPE_S64, 0 },
	{ "f32", TYPE_F32, 0 }, { "f64", TYPE_F64, 0 }, { "ptr", TYPE_U64, 1 },
	{ "string", TYPE_STRING, 0 }, { "strv", TYPE_STRV, 0 },
};

#define A_TYPE "a type: u8 u16 u32 u64 s8 s16 s32 s64 f32 f64 ptr string strv"
#define A_BASE "$argN, $fargN, $stackN, $retval or $fretval"

static bool is_string(u8 type)
{
	return type == TYPE_STRING || type == TYPE_STRV;
}

struct spec {                           /* a fetch while it is read */
	struct fetch f, length;         /* length: how many elements it has, if what.counted */
	bool typed, pointer;
};

static const struct base {
	const char *name;
	u8 from, most;                  /* numbered from 1 to most; 0: no number */
} bases[] = {
	{ "arg", FROM_ARG, 6 + PROBE_STACK_MAX - 1 }, { "farg", FROM_FARG, 8 }, { "stack", FROM_STACK, PROBE_STACK_MAX },
	{ "retval", FROM_RETURN, 0 }, { "fretval", FROM_FRETURN, 0 },
};

/* $arg3: the letters, then the number */
static bool base_word(struct parser *p, struct spec *s)
{
	const char *start = p->at++;
	size_t letters = 0, digits = 0;
	u32 index = 0;

	while (isalpha((unsigned char)parse_peek(p, letters)))
		letters++;
	while (isdigit((unsigned char)parse_peek(p, letters + digits)) && digits < 4)
		index = index * 10 + (u32)(p->at[letters + digits++] - '0');
	for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++) {
		const struct base *b = &bases[i];

		if (!is_word(p, letters, b->name))
			continue;
		if (b->most ? index < 1 || index > b->most : digits)
			break;
		if (b->most && !digits)
			break;
		p->at += letters + digits;
		s->f.what.from = b->from;
		s->f.what.index = (u8)index;
		s->f.what.type = b->from == FROM_FARG || b->from == FROM_FRETURN ? TYPE_F64 : TYPE_U64;
		s->f.at_exit = b->from == FROM_RETURN || b->from == FROM_FRETURN;
		s->f.what.count = 1;
		return true;
	}
	p->at = start;
	fail(p, start, A_BASE " (registers count from 1)");
	return false;
}

/* +16 or -8: what stands before the bracket */
static bool offset(struct parser *p, i32 *to)
{
	const char *start = p->at;
	bool minus = *p->at++ == '-';
	u64 value = 0;
	int base = 10;

	if (parse_peek(p, 0) == '0' && (parse_peek(p, 1) | 32) == 'x') {
		base = 16;
		p->at += 2;
	}
	for (; isxdigit((unsigned char)parse_peek(p, 0)) && value < INT32_MAX; p->at++) {
		int c = tolower((unsigned char)*p->at);

		if (base == 10 && !isdigit(c))
			break;
		value = value * (u64)base + (u64)(isdigit(c) ? c - '0' : c - 'a' + 10);
	}
	if (value > INT32_MAX) {
		fail(p, start, "an offset that fits in 31 bits");
		return false;
	}
	*to = minus ? -(i32)value : (i32)value;
	return true;
}

static bool fetch_spec(struct parser *p, struct spec *s);
static bool is_memory(const struct parser *p);

/* What stands in [...]: a number of the call that says how many there are */
static bool element_length(struct parser *p, struct spec *s)
{
	struct spec length = { .f = { .at = p->at } };

	if (!fetch_spec(p, &length))
		return false;
	if (length.f.what.type >= TYPE_F32 || length.f.what.count != 1 || length.f.what.counted)
		return parse_fail(p, length.f.at, "expected a whole number inside of [...]");
	s->length = length.f;
	s->f.what.counted = 1;
	return true;
}

static bool element_count(struct parser *p, struct spec *s)
{
	const char *start = p->at++;
	u32 n = 0;

	if (parse_peek(p, 0) == '$' || is_memory(p)) {
		if (!element_length(p, s))
			return false;
		n = PROBE_ARRAY_MAX;
	}
	while (isdigit((unsigned char)parse_peek(p, 0)) && n < 1000 && !s->f.what.counted)
		n = n * 10 + (u32)(*p->at++ - '0');
	if (n < 1 || n > PROBE_ARRAY_MAX || !skip_char(p, ']'))
		return parse_fail(p, start, "expected [1] to [%d], or a value of the call such as [$arg2:s32]", PROBE_ARRAY_MAX);
	if (is_string(s->f.what.type) || !s->f.what.steps)
		return parse_fail(p, start, "expected an array of numbers in memory, such as +0($arg1):s64[4]");
	s->f.what.count = (u8)n;
	return true;
}

/* :s32, then [4] */
static bool type_of(struct parser *p, struct spec *s)
{
	if (!skip_char(p, ':'))
		return true;
	size_t length = parse_word(p);

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
		if (!is_word(p, length, types[i].name))
			continue;
		p->at += length;
		s->f.what.type = types[i].type;
		s->pointer = types[i].pointer;
		s->typed = true;
		return parse_peek(p, 0) != '[' || element_count(p, s);
	}
	fail(p, p->at, A_TYPE);
	return false;
}

/* +16(...): the step goes behind those of what is in the brackets */
static bool memory(struct parser *p, struct spec *s)
{
	const char *start = p->at;
	i32 by;

	if (!offset(p, &by))
		return false;
	if (!skip_char(p, '(')) {
		fail(p, p->at, "an offset and '('");
		return false;
	}
	if (parse_peek(p, 0) != '$' && parse_peek(p, 0) != '+' && parse_peek(p, 0) != '-') {
		fail(p, p->at, A_BASE " or another +OFFSET(...)");
		return false;
	}
	if (!fetch_spec(p, s))
		return false;
	if (s->f.what.from == FROM_FARG || s->f.what.from == FROM_FRETURN || (s->typed && s->f.what.type != TYPE_U64) || s->f.what.count != 1)
		return parse_fail(p, start, "expected a pointer inside of the brackets (ptr or u64)");
	if (!skip_char(p, ')')) {
		fail(p, p->at, "')'");
		return false;
	}
	if (s->f.what.steps == PROBE_STEPS_MAX)
		return parse_fail(p, start, "expected at most %d steps from pointer to pointer", PROBE_STEPS_MAX);
	s->f.what.offset[s->f.what.steps++] = by;
	s->f.what.type = TYPE_U64;
	s->typed = s->pointer = false;
	return true;
}

/* Is this sign the start of +16(...) ? */
static bool is_memory(const struct parser *p)
{
	size_t at = 1;

	if (parse_peek(p, 0) != '+' && parse_peek(p, 0) != '-')
		return false;
	while (isalnum((unsigned char)parse_peek(p, at)))
		at++;
	return at > 1 && isdigit((unsigned char)parse_peek(p, 1)) && parse_peek(p, at) == '(';
}

static bool fetch_spec(struct parser *p, struct spec *s)
{
	bool good;

	if (++p->depth > DEPTH_MAX)
		return parse_fail(p, p->at, "expected fewer brackets in brackets");
	if (parse_peek(p, 0) == '$') {
		good = base_word(p, s);
	} else if (is_memory(p)) {
		good = memory(p, s);
	} else {
		fail(p, p->at, A_BASE " or +OFFSET(...)");
		good = false;
	}
	p->depth--;
	return good && type_of(p, s);
}

#define TOO_MANY "expected at most %d different values from the call in one row"

static bool same_fetch(const struct fetch *a, const struct fetch *b)
{
	return !memcmp(&a->what, &b->what, sizeof(a->what)) && a->at_exit == b->at_exit && !a->place && !a->what.counted;
}

/* Each distinct fetch of a row is taken once. */
static u32 add_fetch(struct parser *p, const struct fetch *f)
{
	struct probe_body *b = p->body;

	for (u32 i = 0; i < b->fetches; i++)
		if (same_fetch(&b->fetch[i], f))
			return i;
	if (b->fetches == PROBE_FETCHES_MAX) {
		parse_fail(p, f->at, TOO_MANY, PROBE_FETCHES_MAX);
		return NONE;
	}
	b->fetch[b->fetches] = *f;
	return b->fetches++;
}

/* An array whose length is a value of the call stands right behind that value, and so is never shared. */
static u32 add_counted(struct parser *p, struct spec *s)
{
	struct probe_body *b = p->body;

	if (b->fetches + 2 > PROBE_FETCHES_MAX) {
		parse_fail(p, s->f.at, TOO_MANY, PROBE_FETCHES_MAX);
		return NONE;
	}
	s->length.at_exit = s->f.at_exit |= s->length.at_exit;
	b->fetch[b->fetches++] = s->length;
	b->fetch[b->fetches] = s->f;
	return b->fetches++;
}

static u32 fetch_node(struct parser *p)
{
	struct spec s = { .f = { .at = p->at } };
	const char *start = p->at;

	if (!fetch_spec(p, &s))
		return NONE;
	if (!s.f.what.steps && (s.f.what.from == FROM_FARG || s.f.what.from == FROM_FRETURN) && s.f.what.type != TYPE_F32 && s.f.what.type != TYPE_F64)
		return fail(p, start, "f32 or f64 for a floating-point register");
	if (parse_peek(p, 0) == '@') {
		if (!(p->at++, is_word(p, parse_word(p), "ret")))
			return fail(p, p->at, "@ret");
		p->at += 3;
		s.f.at_exit = true;
	}
	u32 number = s.f.what.counted ? add_counted(p, &s) : add_fetch(p, &s.f);

	if (number == NONE)
		return NONE;
	return add_node(p, (struct node) { .kind = NODE_FETCH, .a = number, .pointer = s.pointer, .at = start });
}

/* ---- texts -------------------------------------------------------------------------------- */

static bool add_part(struct parser *p, struct part part)
{
	struct probe_body *b = p->body;

	if (b->parts >= PARTS_MAX)
		return parse_fail(p, part.at, "expected fewer pieces of text in one row (at most %d)", PARTS_MAX);
	b->part[b->parts++] = part;
	return true;
}

static const char *const part_name[] = {
	[PART_SYMBOL] = "symbol", [PART_DEMANGLED] = "demangled", [PART_FUNCTION] = "function", [PART_SCOPE] = "scope", [PART_BASE] = "base",
	[PART_LETTER] = "letter", [PART_WILD] = "wild",
};

#define NO_LETTER "expected [...] in each symbol of this row: 'letter' is the one that stands for it"

/* {word}: known words or a key, which check_row() looks for */
static bool brace_part(struct parser *p)
{
	const char *start = p->at++;
	size_t length = parse_word(p);
	struct part part = { .kind = PART_KEY, .at = start };

	if (!length || parse_peek(p, length) != '}') {
		fail(p, p->at, "a key or symbol, demangled, function, scope, base, letter, wild, then '}'");
		return false;
	}
	for (u8 i = PART_SYMBOL; i <= PART_WILD; i++)
		if (is_word(p, length, part_name[i]))
			part.kind = i;
	if (part.kind == PART_LETTER && !p->lettered)
		return parse_fail(p, start, NO_LETTER);
	part.text = parse_kept(p, p->at, length);
	p->at += length + 1;
	return add_part(p, part);
}

static bool plain_part(struct parser *p, const char *start, const char *text, size_t length)
{
	return !length || add_part(p, (struct part) { .kind = PART_PLAIN, .text = parse_kept(p, text, length), .at = start });
}

/* Up to the quote, or to a blank when there is none. */
static u32 text_node(struct parser *p)
{
	const char *start = p->at;
	bool quoted = skip_char(p, '"');
	struct node n = { .kind = NODE_TEXT, .a = p->body->parts, .at = start };
	char plain[PROBE_NAME_MAX];
	size_t used = 0;

	for (;;) {
		char c = parse_peek(p, 0);

		if (p->at >= p->end || c == '\n' || c == '\r' || c == 0) {
			if (quoted)
				return fail(p, p->at, "'\"' at the end of the text");
			break;
		}
		if (quoted ? c == '"' : isspace((unsigned char)c) || c == '#')
			break;
		if (c == '{' && parse_peek(p, 1) != '{') {
			if (!plain_part(p, start, plain, used) || !brace_part(p))
				return NONE;
			used = 0;
			continue;
		}
		if ((c == '{' || c == '}') && parse_peek(p, 1) == c)
			p->at++;
		else if (quoted && c == '\\' && (parse_peek(p, 1) == '"' || parse_peek(p, 1) == '\\'))
			c = *++p->at;
		if (used == sizeof(plain))
			return fail(p, start, "a shorter text");
		plain[used++] = c;
		p->at++;
	}
	if (!plain_part(p, start, plain, used))
		return NONE;
	p->at += quoted;
	n.b = p->body->parts;
	return add_node(p, n);
}

/* ---- operators ---------------------------------------------------------------------------- */

/* Longer ones first; a higher level binds tighter. */
static const struct sign {
	const char *text;
	u8 op, level;
} signs[] = {
	{ "||", OP_OR, 1 }, { "&&", OP_AND, 2 }, { "==", OP_EQ, 4 }, { "!=", OP_NE, 4 }, { "<=", OP_LE, 5 }, { ">=", OP_GE, 5 },
	{ "<<", OP_SHL, 6 }, { ">>", OP_SHR, 6 }, { "&", OP_BITAND, 3 }, { "<", OP_LT, 5 }, { ">", OP_GT, 5 },
	{ "+", OP_ADD, 7 }, { "-", OP_SUB, 7 }, { "*", OP_MUL, 8 }, { "/", OP_DIV, 8 }, { "%", OP_MOD, 8 },
};

static const struct sign *sign_here(const struct parser *p)
{
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		if (parse_peek(p, 0) == signs[i].text[0] && (!signs[i].text[1] || parse_peek(p, 1) == signs[i].text[1]))
			return &signs[i];
	return NULL;
}

static u32 operand(struct parser *p);

static u32 operators(struct parser *p, int level)
{
	u32 left = operand(p);

	while (left != NONE) {
		const char *before = p->at;
		const struct sign *s = parse_blanks(p) ? sign_here(p) : NULL;

		if (!s || s->level < level) {
			p->at = before;
			return left;
		}
		const char *start = p->at;

		p->at += strlen(s->text);
		parse_blanks(p);
		u32 right = operators(p, s->level + 1);

		if (right == NONE)
			return NONE;
		left = add_node(p, (struct node) { .kind = NODE_BINARY, .op = s->op, .a = left, .b = right, .at = start });
	}
	return NONE;
}

static u32 inside_brackets(struct parser *p)
{
	u32 n;

	if (++p->depth > DEPTH_MAX) {
		parse_fail(p, p->at, "expected fewer brackets in brackets");
		return NONE;
	}
	parse_blanks(p);
	n = operators(p, 0);
	parse_blanks(p);
	p->depth--;
	return n;
}

static const struct call {
	const char *name;
	u8 function;
	bool second, word;              /* a second value; a word that may follow */
} calls[] = {
	{ "name", CALL_NAME, 0, 0 }, { "sym", CALL_SYM, 0, 0 }, { "cur", CALL_CUR, 0, 1 }, { "min", CALL_MIN, 1, 0 }, { "max", CALL_MAX, 1, 0 },
	{ "log2", CALL_LOG2, 0, 0 }, { "product", CALL_PRODUCT, 0, 0 }, { "last", CALL_LAST, 0, 0 },
	{ "or", CALL_OR, 1, 0 },
};

static u32 call_node(struct parser *p, const struct call *c)
{
	struct node n = { .kind = NODE_CALL, .op = c->function, .b = NONE, .word = "", .at = p->at };

	p->at += strlen(c->name) + 1;
	if ((n.a = inside_brackets(p)) == NONE)
		return NONE;
	if (c->second && !skip_char(p, ','))
		return fail(p, p->at, "',' and a second value");
	if (c->second && (n.b = inside_brackets(p)) == NONE)
		return NONE;
	if (c->word && skip_char(p, ',')) {
		parse_blanks(p);
		size_t length = parse_word(p);

		if (!length)
			return fail(p, p->at, "a word");
		n.word = parse_kept(p, p->at, length);
		p->at += length;
		parse_blanks(p);
	}
	if (!skip_char(p, ')'))
		return fail(p, p->at, "')'");
	return add_node(p, n);
}

/* A key, key[2] or a function */
static u32 word_node(struct parser *p)
{
	size_t length = parse_word(p);
	struct node n = { .kind = NODE_KEY, .at = p->at };
	u32 element = 0;

	if (parse_peek(p, length) == '(') {
		for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
			if (is_word(p, length, calls[i].name))
				return call_node(p, &calls[i]);
		return fail(p, p->at, "one of the functions name sym cur min max log2 product last or");
	}
	if (is_word(p, length, "letter")) {
		n.kind = NODE_LETTER;
		p->at += length;
		if (!p->lettered)
			parse_fail(p, n.at, NO_LETTER);
		return p->lettered ? add_node(p, n) : NONE;
	}
	n.word = parse_kept(p, p->at, length);
	p->at += length;
	if (!skip_char(p, '['))
		return add_node(p, n);
	while (isdigit((unsigned char)parse_peek(p, 0)) && element < 100)
		element = element * 10 + (u32)(*p->at++ - '0');
	if (element >= PROBE_ARRAY_MAX || p->at[-1] == '[' || !skip_char(p, ']'))
		return fail(p, p->at, "the number of an element, from 0 on, and ']'");
	n.kind = NODE_INDEX;
	n.b = element;
	return add_node(p, n);
}

static u32 unary_node(struct parser *p, enum node_kind kind)
{
	struct node n = { .kind = kind, .at = p->at++ };

	if (++p->depth > DEPTH_MAX) {
		parse_fail(p, n.at, "expected fewer signs in a row");
		return NONE;
	}
	n.a = operand(p);
	p->depth--;
	return n.a == NONE ? NONE : add_node(p, n);
}

static u32 bracket_node(struct parser *p)
{
	p->at++;
	u32 n = inside_brackets(p);

	if (n != NONE && !skip_char(p, ')'))
		return fail(p, p->at, "an operator or ')'");
	return n;
}

/* 'L' is the number of that character. */
static u32 character_node(struct parser *p)
{
	struct node n = { .kind = NODE_NUMBER, .whole = parse_peek(p, 1), .number = parse_peek(p, 1), .at = p->at };

	if (!isprint((unsigned char)parse_peek(p, 1)) || parse_peek(p, 2) != '\'')
		return fail(p, p->at, "a character between two '");
	p->at += 3;
	return add_node(p, n);
}

static u32 operand(struct parser *p)
{
	char c = parse_peek(p, 0);

	if (c == '$' || is_memory(p))
		return fetch_node(p);
	if (c == '(')
		return bracket_node(p);
	if (c == '-')
		return unary_node(p, NODE_MINUS);
	if (c == '!')
		return unary_node(p, NODE_NOT);
	if (isdigit((unsigned char)c))
		return number_node(p);
	if (c == '\'')
		return character_node(p);
	if (parse_word(p))
		return word_node(p);
	return fail(p, p->at, "a value");
}

/* A bare word such as h2d, which ends the value; cur(...) and a key in arithmetic look alike at first. */
static size_t bare_word(const struct parser *p)
{
	size_t length = parse_word(p);

	while (length && (isalnum((unsigned char)parse_peek(p, length)) || (parse_peek(p, length) && strchr("_.:-/", parse_peek(p, length)))))
		length++;
	return parse_peek(p, length) == '(' ? 0 : length;
}

u32 expr_value(struct parser *p, bool words)
{
	size_t length = words ? bare_word(p) : 0;

	if (parse_peek(p, 0) == '"' || parse_peek(p, 0) == '{')
		return text_node(p);
	if (length) {
		struct node n = { .kind = NODE_WORD, .word = parse_kept(p, p->at, length), .at = p->at };

		p->at += length;
		return add_node(p, n);
	}
	return operators(p, 0);
}
