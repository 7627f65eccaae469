/*
 * parse.c - reads a probe file: one row a line, `SYMBOL ROLE key=VALUE ... flag ...  # comment`.
 */
#include "inside.h"

#include "../util/array.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

const char *const probe_role_name[PROBE_ROLES] = {
	[ROLE_SPAN] = "span", [ROLE_DISPATCH] = "dispatch", [ROLE_SUBMIT] = "submit", [ROLE_WAIT] = "wait", [ROLE_COPY] = "copy",
	[ROLE_ALLOC] = "alloc", [ROLE_FREE] = "free", [ROLE_RETAIN] = "retain", [ROLE_COUNTER] = "counter", [ROLE_MARK] = "mark", [ROLE_THREAD] = "thread",
	[ROLE_BIND] = "bind", [ROLE_ALIAS] = "alias", [ROLE_SET] = "set", [ROLE_TIME] = "time", [ROLE_TABLE] = "table",
	[ROLE_BUILTIN] = "builtin", [ROLE_GETTER] = "getter", [ROLE_MODULE] = "module",
};

enum { SYMBOL_MAX = 1000, ROLES_TEXT = 256 };

#define FLAGS "entry, data, trust, careful, callstack or sret"

/* ---- messages ----------------------------------------------------------------------------- */

/* Counts on from the place it was asked for last. */
static u32 line_of(struct parser *p, const char *at)
{
	const char *c;

	if (!p->line || at < p->line_start) {
		p->line = 1;
		p->line_start = p->text;
	}
	while ((c = memchr(p->line_start, '\n', (size_t)(at - p->line_start)))) {
		p->line_start = c + 1;
		p->line++;
	}
	return p->line;
}

bool parse_fail(struct parser *p, const char *at, const char *format, ...)
{
	char *to = p->error->text;
	size_t size = sizeof(p->error->text);
	u32 line;
	va_list args;
	int used;

	if (p->failed)
		return false;
	p->failed = true;
	line = line_of(p, at);
	used = snprintf(to, size, "%.200s:%u:%u: ", p->file, line, (u32)(at - p->line_start) + 1);
	va_start(args, format);
	vsnprintf(to + used, size - (size_t)used, format, args);
	va_end(args);
	return false;
}

/* The word there, at most 24 bytes of it. */
const char *parse_quote(const struct parser *p, const char *at, char to[static 40])
{
	size_t length = 0;

	while (at + length < p->end && length < 24 && isgraph((unsigned char)at[length]) && (!length || !strchr("=#", at[length])))
		length++;
	if (length && at[0] != '#')
		snprintf(to, 40, "'%.*s'", (int)length, at);
	else if (at < p->end && !isspace((unsigned char)*at) && *at != '#' && *at)
		snprintf(to, 40, "byte 0x%02x", (unsigned char)*at);
	else if (at < p->end && (*at == ' ' || *at == '\t'))
		snprintf(to, 40, "a blank");
	else
		snprintf(to, 40, "the end of the row");
	return to;
}

const char *parse_kept(struct parser *p, const char *text, size_t length)
{
	return pool_text(&p->set->pool, text, length);
}

/* ---- characters --------------------------------------------------------------------------- */

size_t parse_word(const struct parser *p)
{
	size_t length = 0;

	if (isdigit((unsigned char)parse_peek(p, 0)))
		return 0;
	while (isalnum((unsigned char)parse_peek(p, length)) || parse_peek(p, length) == '_')
		length++;
	return length;
}

/* "\" at the end of a line joins it with the next one. */
static size_t joint(const struct parser *p)
{
	if (parse_peek(p, 0) != '\\')
		return 0;
	if (parse_peek(p, 1) == '\n')
		return 2;
	return parse_peek(p, 1) == '\r' && parse_peek(p, 2) == '\n' ? 3 : 0;
}

bool parse_blanks(struct parser *p)
{
	while (p->at < p->end) {
		size_t joined = joint(p);

		if (*p->at != ' ' && *p->at != '\t' && !joined)
			break;
		p->at += joined ? joined : 1;
	}
	if (p->at < p->end && *p->at == '\r' && (p->at + 1 == p->end || p->at[1] == '\n'))
		return false;
	return p->at < p->end && *p->at != '#' && *p->at != '\n';
}

static void next_line(struct parser *p)
{
	while (p->at < p->end && *p->at++ != '\n')
		;
}

/* ---- options of a row --------------------------------------------------------------------- */

static bool take_number(struct parser *p, u64 most, u64 *to)
{
	u64 value = 0;

	if (!isdigit((unsigned char)parse_peek(p, 0)))
		return false;
	while (isdigit((unsigned char)parse_peek(p, 0))) {
		value = value * 10 + (u64)(*p->at++ - '0');
		if (value > most)
			return false;
	}
	*to = value;
	return true;
}

/* Words, or the argument that says how many there are. One more register may be taken by sret. */
static bool option_stack(struct parser *p)
{
	static const char argument[] = "$arg";
	const char *start = p->at;
	bool told = (size_t)(p->end - p->at) > strlen(argument) && !memcmp(p->at, argument, strlen(argument));
	u64 n;

	p->at += told ? strlen(argument) : 0;
	if (!take_number(p, told ? 5 : PROBE_STACK_MAX, &n) || (told && !n))
		return parse_fail(p, start, "expected a number of stack words from 0 to %d, or one of $arg1 to $arg5 that says how many", PROBE_STACK_MAX);
	p->body->stack = told ? 0 : (u32)n;
	p->body->stack_from = told ? (u32)n : 0;
	return true;
}

static bool option_min(struct parser *p)
{
	static const struct { const char *name; u64 ns; } units[] = { { "ns", 1 }, { "us", 1000 }, { "ms", 1000000 }, { "s", 1000000000 } };
	const char *start = p->at;
	u64 value;
	bool good = take_number(p, 1000000000, &value);
	size_t length = parse_word(p);

	for (size_t i = 0; good && i < sizeof(units) / sizeof(*units); i++) {
		if (strlen(units[i].name) == length && !memcmp(p->at, units[i].name, length)) {
			p->at += length;
			p->body->min_ns = value * units[i].ns;
			return true;
		}
	}
	return parse_fail(p, start, "expected a time such as 500ns, 1us or 2ms");
}

/* A plain text, with or without quotes. */
static const char *take_text(struct parser *p)
{
	bool quoted = parse_peek(p, 0) == '"';
	const char *start = p->at += quoted;

	while (p->at < p->end && isprint((unsigned char)*p->at) && (quoted ? *p->at != '"' : *p->at != ' ' && *p->at != '#' && *p->at != '"'))
		p->at++;
	const char *end = p->at;

	if (end == start || end - start > 200 || (quoted && (p->at >= p->end || *p->at++ != '"')))
		return NULL;
	return parse_kept(p, start, (size_t)(end - start));
}

static bool option_lib(struct parser *p)
{
	const char *start = p->at;

	p->body->library = take_text(p);
	return p->body->library || parse_fail(p, start, "expected the file name of a library, such as libcudart.so*");
}

static bool option_unless(struct parser *p)
{
	const char *start = p->at;

	p->body->unless = take_text(p);
	return p->body->unless || parse_fail(p, start, "expected a function of the same library, such as omp_get_level");
}

static bool option_dom(struct parser *p)
{
	const char *start = p->at;

	p->body->domain = take_text(p);
	return p->body->domain || parse_fail(p, start, "expected a name, such as gpu0 or \"GPU 0\"");
}

static const struct option {
	const char *name;
	bool (*take)(struct parser *p);
} options[] = { { "stack", option_stack }, { "min", option_min }, { "lib", option_lib }, { "dom", option_dom }, { "unless", option_unless } };

static bool *flag_of(struct probe_body *b, const char *word, size_t length)
{
	const struct { const char *name; bool *to; } flags[] = {
		{ "entry", &b->entry }, { "data", &b->data }, { "trust", &b->trust }, { "careful", &b->careful }, { "callstack", &b->callstack }, { "sret", &b->sret },
	};

	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
		if (strlen(flags[i].name) == length && !memcmp(flags[i].name, word, length))
			return flags[i].to;
	return NULL;
}

/* ---- keys --------------------------------------------------------------------------------- */

static bool takes_words(const char *key)
{
	static const char *const keys[] = { "name", "heap", "label", "dir", "as", "unit" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!strcmp(keys[i], key))
			return true;
	return false;
}

static bool take_key(struct parser *p, const char *name, const char *start)
{
	struct probe_body *b = p->body;

	for (u32 i = 0; i < b->keys; i++)
		if (!strcmp(b->key[i].name, name))
			return parse_fail(p, start, "expected another key: '%s' is there already", name);
	if (b->keys == PROBE_KEYS_MAX)
		return parse_fail(p, start, "expected at most %d keys in a row", PROBE_KEYS_MAX);
	u32 node = expr_value(p, takes_words(name));

	if (node == NONE)
		return false;
	b->key[b->keys++] = (struct key) { .name = name, .node = node, .at = start };
	return true;
}

/* 9=OrtApi.Run */
static bool take_slot(struct parser *p)
{
	struct probe_body *b = p->body;
	const char *start = p->at;
	u64 index;
	size_t length = 0;

	if (!take_number(p, SLOT_INDEX_MAX - 1, &index) || parse_peek(p, 0) != '=')
		return parse_fail(p, start, "expected a slot of the table, such as 9=Api.Run (at most %d)", SLOT_INDEX_MAX - 1);
	for (u32 i = 0; i < b->slots; i++)
		if (b->slot[i].index == index)
			return parse_fail(p, start, "expected another slot: %llu is there already", (unsigned long long)index);
	p->at++;
	while (isalnum((unsigned char)parse_peek(p, length)) || parse_peek(p, length) == '_' || parse_peek(p, length) == '.')
		length++;
	if (!length || !memchr(p->at, '.', length) || b->slots == SLOTS_MAX)
		return parse_fail(p, p->at, "expected a name with a dot for the function in this slot, such as Api.Run (at most %d a row)", SLOTS_MAX);
	b->slot[b->slots++] = (struct table_slot) { (u32)index, parse_kept(p, p->at, length), start };
	p->at += length;
	return true;
}

static bool take_item(struct parser *p)
{
	const char *start = p->at;
	size_t length = parse_word(p);
	bool *flag;
	char there[40];

	if (isdigit((unsigned char)*p->at))
		return take_slot(p);
	if (!length)
		return parse_fail(p, start, "expected a key and '=', or a flag, not %s", parse_quote(p, start, there));
	p->at += length;
	if (parse_peek(p, 0) != '=') {
		flag = flag_of(p->body, start, length);
		if (!flag)
			return parse_fail(p, start, "expected a flag (" FLAGS ") or '%.*s=' and a value", length > 32 ? 32 : (int)length, start);
		*flag = true;
		return true;
	}
	p->at++;
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++)
		if (strlen(options[i].name) == length && !memcmp(options[i].name, start, length))
			return options[i].take(p);
	return take_key(p, parse_kept(p, start, length), start);
}

/* Blanks stand between the items of a row. */
static bool take_items(struct parser *p)
{
	const char *before = p->at;
	char there[40];

	while (parse_blanks(p)) {
		if (p->at == before)
			return parse_fail(p, before, "expected a blank or an operator, not %s", parse_quote(p, before, there));
		if (!take_item(p))
			return false;
		before = p->at;
	}
	return true;
}

/* ---- symbols, roles, rows ----------------------------------------------------------------- */

static bool is_symbol(char c)
{
	return isalnum((unsigned char)c) || (c && strchr("_.$*?[]", c));
}

struct symbols {
	const char *at;
	size_t length;
};

static bool check_symbol(struct parser *p, const char *at, size_t length)
{
	size_t prefix = 0, brackets;
	char there[40];

	while (prefix < length && at[prefix] != '*' && at[prefix] != '?')
		prefix++;
	if (!length)
		return parse_fail(p, at, "expected a symbol, not %s", parse_quote(p, at, there));
	const char *open = memchr(at, '[', length), *close = memchr(at, ']', length);

	brackets = open && close > open && (size_t)(close - at) < prefix ? (size_t)(close - open) : 0;    /* all in them are one character */
	if (prefix < length && prefix - brackets < PREFIX_MIN)
		return parse_fail(p, at, "expected at least %d characters before the first '*' or '?'", PREFIX_MIN);

	p->lettered &= open != NULL;
	for (const char *c = open ? open + 1 : at; open && close && c < close; c++)
		close = isalnum((unsigned char)*c) ? close : NULL;
	if ((open || close) && (!open || !close || close - open < 2 || close - open > LETTERS_MAX + 1 ||
				memchr(open + 1, '[', (size_t)(at + length - open - 1)) || memchr(close + 1, ']', (size_t)(at + length - close - 1))))
		return parse_fail(p, at, "expected at most one [...] in a symbol, with 1 to %d letters in it", LETTERS_MAX);
	return length <= SYMBOL_MAX || parse_fail(p, at, "expected a symbol of at most %d characters", SYMBOL_MAX);
}

/* a|b|c: checked, not yet taken */
static bool take_symbols(struct parser *p, struct symbols *s)
{
	char there[40];

	s->at = p->at;
	p->lettered = true;
	for (;;) {
		const char *start = p->at;

		while (p->at < p->end && is_symbol(*p->at))
			p->at++;
		if (!check_symbol(p, start, (size_t)(p->at - start)))
			return false;
		if (parse_peek(p, 0) != '|')
			break;
		p->at++;
	}
	s->length = (size_t)(p->at - s->at);
	if (p->at < p->end && !isspace((unsigned char)*p->at) && *p->at != '#' && *p->at != '\\')
		return parse_fail(p, p->at, "expected a blank after the symbol, not %s", parse_quote(p, p->at, there));
	return true;
}

/* "span, dispatch ... or module" */
static const char *all_roles(char to[static ROLES_TEXT])
{
	int used = snprintf(to, ROLES_TEXT, "%s", probe_role_name[0]);

	for (u32 i = 1; i < PROBE_ROLES && used < ROLES_TEXT; i++)
		used += snprintf(to + used, (size_t)(ROLES_TEXT - used), "%s%s", i + 1 < PROBE_ROLES ? ", " : " or ", probe_role_name[i]);
	return to;
}

static bool take_role(struct parser *p, enum probe_role *role)
{
	bool more = parse_blanks(p);
	size_t length = more ? parse_word(p) : 0;
	char there[40], roles[ROLES_TEXT];

	for (u32 i = 0; i < PROBE_ROLES; i++) {
		if (strlen(probe_role_name[i]) == length && !memcmp(probe_role_name[i], p->at, length)) {
			p->at += length;
			*role = i;
			return true;
		}
	}
	return parse_fail(p, p->at, "expected a role (%s), not %s", all_roles(roles), parse_quote(p, p->at, there));
}

static const char *domain_of(struct parser *p)
{
	const char *base = strrchr(p->file, '/'), *dot;

	base = base ? base + 1 : p->file;
	dot = strrchr(base, '.');
	return p->preset ? p->preset : parse_kept(p, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
}

static struct probe_body *draft_body(struct parser *p)
{
	struct draft *d = &p->draft;

	d->body = (struct probe_body) {
		.node = d->node, .part = d->part, .key = d->key, .slot = d->slot, .fetch = d->fetch,
		.stack = PROBE_STACK_DEFAULT, .trust = p->preset,
	};
	return &d->body;
}

static struct probe_body *keep_body(struct probe_set *set, const struct probe_body *draft)
{
	struct probe_body *b = pool_copy(&set->pool, draft, sizeof(*draft));

	b->node = pool_copy(&set->pool, b->node, b->nodes * sizeof(*b->node));
	b->part = pool_copy(&set->pool, b->part, b->parts * sizeof(*b->part));
	b->key = pool_copy(&set->pool, b->key, b->keys * sizeof(*b->key));
	b->slot = pool_copy(&set->pool, b->slot, b->slots * sizeof(*b->slot));
	b->fetch = pool_copy(&set->pool, b->fetch, b->fetches * sizeof(*b->fetch));
	ARRAY_ROOM(set->body, set->body_cap, set->bodies + 1);
	return set->body[set->bodies++] = b;
}

static bool is_builtin(const char *symbol)
{
	static const char *const names[] = { PROBE_BUILTINS };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(names[i], symbol))
			return true;
	return false;
}

/* `symbol` is what the row says, `at` where. */
static bool add_rule(struct parser *p, struct probe_rule rule, const char *symbol, size_t length, const char *at)
{
	struct probe_set *set = p->set;

	rule.symbol = parse_kept(p, symbol, length);
	rule.prefix = (u32)strcspn(rule.symbol, "*?");
	if (rule.role == ROLE_BUILTIN && !is_builtin(rule.symbol))
		return parse_fail(p, at, "expected a function that mlprof has code for: see mlprof-probes(5)");
	if (set->rules == PROBE_ROWS_MAX)
		return parse_fail(p, at, "expected at most %d rows in all files together", PROBE_ROWS_MAX);
	ARRAY_ROOM(set->rule, set->rule_cap, set->rules + 1);
	set->rule[set->rules++] = pool_copy(&set->pool, &rule, sizeof(rule));
	return true;
}

/* "cblas_[sd]gemm": a row for each letter */
static bool add_letters(struct parser *p, struct probe_rule rule, const char *at, size_t length)
{
	const char *open = memchr(at, '[', length), *close = memchr(at, ']', length);
	char symbol[SYMBOL_MAX];

	if (!open)
		return add_rule(p, rule, at, length, at);
	size_t before = (size_t)(open - at), after = (size_t)(at + length - close - 1);

	memcpy(symbol, at, before);
	memcpy(symbol + before + 1, close + 1, after);
	for (const char *letter = open + 1; letter < close; letter++) {
		rule.letter = symbol[before] = *letter;
		if (!add_rule(p, rule, symbol, before + 1 + after, at))
			return false;
	}
	return true;
}

static bool add_rules(struct parser *p, const struct symbols *s, enum probe_role role)
{
	struct probe_body *b = p->body;
	struct probe_rule rule = {
		.role = role, .file = p->file, .preset = p->preset, .domain = b->domain ? b->domain : domain_of(p),
		.min_ns = b->min_ns, .entry = b->entry, .callstack = b->callstack, .body = b,
	};

	rule.line = line_of(p, s->at);
	rule.number = p->set->bodies - 1;
	for (const char *at = s->at, *end = s->at + s->length; at < end;) {
		const char *bar = memchr(at, '|', (size_t)(end - at));
		size_t length = (size_t)((bar ? bar : end) - at);

		if (!add_letters(p, rule, at, length))
			return false;
		at += length + 1;
	}
	return true;
}

static bool take_row(struct parser *p)
{
	struct symbols s = { 0 };
	enum probe_role role = ROLE_SPAN;

	p->body = draft_body(p);
	p->depth = 0;
	if (!take_symbols(p, &s) || !take_role(p, &role) || !take_items(p) || !check_row(p, role, s.at))
		return false;
	p->body = keep_body(p->set, p->body);
	return add_rules(p, &s, role);
}

/* Functions in tables have rows of their own, in the same file. */
static bool check_slots(struct parser *p, u32 first_rule, u32 first_body)
{
	for (u32 i = first_body; i < p->set->bodies; i++) {
		struct probe_body *b = p->set->body[i];

		for (u32 s = 0; s < b->slots; s++) {
			u32 r = first_rule;

			while (r < p->set->rules && strcmp(p->set->rule[r]->symbol, b->slot[s].name))
				r++;
			if (r == p->set->rules)
				return parse_fail(p, b->slot[s].at, "expected a row for '%s' in this file", b->slot[s].name);
		}
	}
	return true;
}

bool parse_file(struct parser *p)
{
	u32 rules = p->set->rules, bodies = p->set->bodies;

	p->at = p->text;
	while (p->at < p->end) {
		if (parse_blanks(p) && !take_row(p))
			return false;
		next_line(p);
	}
	return check_slots(p, rules, bodies);
}
