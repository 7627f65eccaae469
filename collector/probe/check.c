/*
 * check.c - what can only be told once a row is read to its end: which keys its names mean, whether types fit, whether
 * the role has what it needs, and in which order the library fetches.
 */
#include "inside.h"

/* ---- what the roles need ------------------------------------------------------------------ */

enum type { NUMBER, TEXT, ARRAY, WRONG };

/* Keys that a role knows: "!" it must be there, "#" it must be a number. */
static const char *const known[PROBE_ROLES] = {
	[ROLE_SPAN] = "name #flops #bytes #kernel",
	[ROLE_DISPATCH] = "name #queue #of #wait #gx #gy #gz #lx #ly #lz #flops #bytes",
	[ROLE_SUBMIT] = "name #queue #of #wait",
	[ROLE_WAIT] = "name #queue #of #over #until",
	[ROLE_COPY] = "name !#bytes dir #queue #of #wait",
	[ROLE_ALLOC] = "name heap !#ptr !#size label #own #in #was",
	[ROLE_FREE] = "name heap !#ptr #any",
	[ROLE_RETAIN] = "name heap !#ptr",
	[ROLE_COUNTER] = "name !#value unit",
	[ROLE_MARK] = "name",
	[ROLE_THREAD] = "!name",
	[ROLE_BIND] = "!#key !name heap #flops #bytes",
	[ROLE_ALIAS] = "!#key !#from",
	[ROLE_SET] = "name !#key !#val as",
	[ROLE_TIME] = "!#of #start #end",
	[ROLE_TABLE] = "!#at #size",
	[ROLE_BUILTIN] = "",
	[ROLE_GETTER] = "!symbol !#at",
	[ROLE_MODULE] = "",
};

static const char always[] = "#when #ok";

struct word {
	const char *name;
	size_t length;
	bool needed, number;
};

/* The first word of the list, which then begins behind it. By hand: words are shorter than what strcspn() does to start. */
static bool next_word(const char **list, struct word *w)
{
	const char *at = *list;

	*w = (struct word) { 0 };
	for (; *at == '!' || *at == '#'; at++)
		*(*at == '!' ? &w->needed : &w->number) = true;
	for (w->name = at; *at && *at != ' '; at++)
		w->length++;
	*list = at + (*at == ' ');
	return w->length;
}

static bool find_word(const char *list, const char *name, struct word *w)
{
	size_t length = strlen(name);

	while (next_word(&list, w))
		if (w->length == length && !memcmp(w->name, name, length))
			return true;
	return false;
}

static u32 key_number(const struct probe_body *b, const char *name)
{
	for (u32 i = 0; i < b->keys; i++)
		if (!strcmp(b->key[i].name, name))
			return i;
	return NONE;
}

/* ---- names and types ---------------------------------------------------------------------- */

struct walk {
	struct parser *p;
	struct probe_body *b;
	bool open[PROBE_KEYS_MAX];              /* being worked out */
	bool done[PROBE_KEYS_MAX];
	enum type type[PROBE_KEYS_MAX];
	u32 cost[PROBE_KEYS_MAX];
};

static enum type walk_key(struct walk *w, const char *name, const char *at, u32 *key, u32 *cost);
static enum type walk_node(struct walk *w, u32 n, u32 *cost);

static enum type wrong(struct walk *w, const char *at, const char *expected)
{
	parse_fail(w->p, at, "expected %s", expected);
	return WRONG;
}

static bool walk_number(struct walk *w, u32 n, u32 *cost)
{
	enum type t = walk_node(w, n, cost);

	if (t == TEXT || t == ARRAY)
		wrong(w, w->b->node[n].at, t == TEXT ? "a number, this is a text" : "a number, this is an array: write key[0] for its first element");
	return t == NUMBER;
}

static enum type walk_array(struct walk *w, u32 n, u32 *cost)
{
	enum type t = walk_node(w, n, cost);

	if (t == ARRAY)
		return NUMBER;
	return t == WRONG ? WRONG : wrong(w, w->b->node[n].at, "an array, such as +16($arg1):s64[4]");
}

static enum type walk_text(struct walk *w, u32 n, u32 *cost)
{
	for (u32 i = w->b->node[n].a; i < w->b->node[n].b; i++) {
		struct part *part = &w->b->part[i];

		if (part->kind == PART_KEY && walk_key(w, part->text, part->at, &part->key, cost) == WRONG)
			return WRONG;
	}
	return TEXT;
}

static enum type walk_element(struct walk *w, u32 n, u32 *cost)
{
	struct node *node = &w->b->node[n];
	enum type t = walk_key(w, node->word, node->at, &node->a, cost);
	const struct node *array;

	if (t == WRONG)
		return WRONG;
	array = &w->b->node[w->b->key[node->a].node];
	if (t != ARRAY || array->kind != NODE_FETCH)
		return wrong(w, node->at, "a key whose value is an array, such as +16($arg1):s64[4]");
	if (node->b >= w->b->fetch[array->a].what.count)
		return wrong(w, node->at, "an element that the array has; the first one is [0]");
	return NUMBER;
}

/* Both sides of or(a,b) are of one type: which of them it will be is known only at the call. */
static enum type walk_either(struct walk *w, u32 n, u32 *cost)
{
	const struct node *node = &w->b->node[n];
	enum type a = walk_node(w, node->a, cost), b = a == WRONG ? WRONG : walk_node(w, node->b, cost);

	if (a != WRONG && b != WRONG && (a != b || a == ARRAY))
		return wrong(w, node->at, "two numbers or two texts in or(a,b)");
	return b;
}

static enum type walk_fetch(const struct walk *w, u32 n)
{
	const struct probe_fetch *f = &w->b->fetch[w->b->node[n].a].what;

	return f->type == TYPE_STRING || f->type == TYPE_STRV ? TEXT : f->count > 1 ? ARRAY : NUMBER;
}

static enum type walk_node(struct walk *w, u32 n, u32 *cost)
{
	struct node *node = &w->b->node[n];

	++*cost;
	switch ((enum node_kind)node->kind) {
	case NODE_NUMBER:
	case NODE_LETTER:
		return NUMBER;
	case NODE_WORD:
		return TEXT;
	case NODE_FETCH:
		return walk_fetch(w, n);
	case NODE_TEXT:
		return walk_text(w, n, cost);
	case NODE_KEY:
		return walk_key(w, node->word, node->at, &node->a, cost);
	case NODE_INDEX:
		return walk_element(w, n, cost);
	case NODE_NOT:
	case NODE_MINUS:
		return walk_number(w, node->a, cost) ? NUMBER : WRONG;
	case NODE_BINARY:
		return walk_number(w, node->a, cost) && walk_number(w, node->b, cost) ? NUMBER : WRONG;
	case NODE_CALL:
		if (node->op == CALL_PRODUCT || node->op == CALL_LAST)
			return walk_array(w, node->a, cost);
		if (node->op == CALL_OR)
			return walk_either(w, n, cost);
		if (!walk_number(w, node->a, cost) || (node->b != NONE && !walk_number(w, node->b, cost)))
			return WRONG;
		return node->op == CALL_NAME || node->op == CALL_SYM ? TEXT : NUMBER;
	}
	return WRONG;
}

static enum type walk_key(struct walk *w, const char *name, const char *at, u32 *key, u32 *cost)
{
	u32 k = *key = key_number(w->b, name);

	if (k == NONE) {
		parse_fail(w->p, at, "expected a key of this row, and '%.40s' is none", name);
		return WRONG;
	}
	if (w->open[k]) {
		parse_fail(w->p, at, "expected a value that does not depend on itself, as '%.40s' does", name);
		return WRONG;
	}
	if (!w->done[k]) {
		w->open[k] = true;
		w->type[k] = walk_node(w, w->b->key[k].node, &w->cost[k]);
		w->open[k] = false;
		w->done[k] = true;
	}
	*cost += w->cost[k];
	if (w->type[k] != WRONG && *cost > COST_MAX)
		return wrong(w, at, "a value that takes fewer steps to work out");
	return w->type[k];
}

/* ---- keys of the role --------------------------------------------------------------------- */

static bool check_direction(struct parser *p, const struct key *k, enum type type)
{
	const struct node *n = &p->body->node[k->node];

	if (type == NUMBER)
		return true;
	for (size_t i = 0; n->kind == NODE_WORD && i < DIRECTION_UNKNOWN; i++)
		if (!strcmp(n->word, probe_direction_name[i]))
			return true;
	return parse_fail(p, n->at, "expected h2d, d2h, d2d, h2h, fill or a number");
}

const char *probe_rate_unit(const char *key)
{
	return !strncmp(key, "rate_", 5) ? key + 5 : !strcmp(key, "tokens") ? key : NULL;
}

static bool check_keys(struct walk *w, enum probe_role role)
{
	struct parser *p = w->p;

	for (u32 i = 0; i < w->b->keys; i++) {
		struct key *k = &w->b->key[i];
		struct word word;
		u32 self, cost = 0;
		enum type t = walk_key(w, k->name, k->at, &self, &cost);

		if (t == WRONG)
			return false;
		k->shown = !find_word(known[role], k->name, &word) && !find_word(always, k->name, &word);
		if ((word.number || probe_rate_unit(k->name)) && t != NUMBER)
			return parse_fail(p, w->b->node[k->node].at, "expected a number for '%s'", k->name);
		if (role == ROLE_COPY && !strcmp(k->name, "dir") && !check_direction(p, k, t))
			return false;
	}
	return true;
}

/* A file is not called. */
static bool check_module(struct parser *p, enum probe_role role)
{
	if (role != ROLE_MODULE || !p->body->keys)
		return true;
	return parse_fail(p, p->body->key[0].at, "expected no keys in a row of role module: its symbol is the name of a file");
}

static bool check_needed(struct parser *p, enum probe_role role, const char *at)
{
	const char *list = known[role];
	struct word word;

	while (next_word(&list, &word)) {
		char name[16] = "";

		memcpy(name, word.name, word.length);
		if (word.needed && key_number(p->body, name) == NONE)
			return parse_fail(p, at, "expected a key '%s=' in a row of role %s", name, probe_role_name[role]);
	}
	return true;
}

/* One that tells neither its beginning nor its end tells nothing. */
static bool check_time(struct parser *p, enum probe_role role, const char *at)
{
	if (role != ROLE_TIME || key_number(p->body, "start") != NONE || key_number(p->body, "end") != NONE)
		return true;
	return parse_fail(p, at, "expected a key 'start=' or 'end=' in a row of role time");
}

/* ---- function tables ---------------------------------------------------------------------- */

/* What the library itself must know is fetched as it is, not worked out. */
static bool check_plain(struct parser *p, const char *name, u8 place)
{
	struct probe_body *b = p->body;
	u32 k = key_number(b, name);

	if (k == NONE)
		return true;
	struct node *n = &b->node[b->key[k].node];
	const struct probe_fetch *f = n->kind == NODE_FETCH ? &b->fetch[n->a].what : NULL;

	if (!f || f->type != TYPE_U64)
		return parse_fail(p, n->at, "expected a value that is only fetched, of type u64 or ptr, for '%s'", name);
	if (b->fetches == PROBE_FETCHES_MAX)
		return parse_fail(p, n->at, "expected at most %d different values from the call in one row", PROBE_FETCHES_MAX);
	b->fetch[b->fetches] = b->fetch[n->a];
	b->fetch[b->fetches].place = place;
	b->fetch[b->fetches].at_exit = true;
	n->a = b->fetches++;
	return true;
}

static bool check_table(struct parser *p, enum probe_role role, const char *at)
{
	struct probe_body *b = p->body;

	if (role != ROLE_TABLE)
		return !b->slots || parse_fail(p, b->slot[0].at, "expected a key and '=': only rows of role table have slots");
	if (!b->slots)
		return parse_fail(p, at, "expected at least one slot in a table, such as 9=Api.Run");
	return check_plain(p, "size", 1) && check_plain(p, "at", 2);
}

/* The library looks for the row of a function by its name, and for the place that holds it: it knows no other keys here. */
static bool check_getter(struct parser *p, enum probe_role role)
{
	const struct probe_body *b = p->body;

	if (role != ROLE_GETTER)
		return true;
	for (u32 i = 0; i < b->keys; i++)
		if (strcmp(b->key[i].name, "symbol") && strcmp(b->key[i].name, "at"))
			return parse_fail(p, b->key[i].at, "expected nothing but 'symbol=' and 'at=' in a row of role getter");
	const struct node *n = &b->node[b->key[key_number(b, "symbol")].node];

	if (n->kind != NODE_FETCH || b->fetch[n->a].what.type != TYPE_STRING || b->fetch[n->a].at_exit)
		return parse_fail(p, n->at, "expected a text that is there before the call, such as $arg1:string, for 'symbol'");
	return check_plain(p, "at", 2);
}

/* ---- fetches ------------------------------------------------------------------------------ */

static int order_of(const struct fetch *f)
{
	return f->place ? 1 + f->place : f->at_exit;
}

/* Those at entry first, the table's own last; each node follows its fetch. */
static void order_fetches(struct probe_body *b)
{
	struct fetch sorted[PROBE_FETCHES_MAX];
	u32 moved[PROBE_FETCHES_MAX] = { 0 }, used = 0;
	bool needed[PROBE_FETCHES_MAX] = { 0 };

	for (u32 i = 0; i < b->nodes; i++)
		if (b->node[i].kind == NODE_FETCH) {
			needed[b->node[i].a] = true;
			if (b->fetch[b->node[i].a].what.counted)
				needed[b->node[i].a - 1] = true;
		}
	b->entry_fetches = 0;
	for (int order = 0; order <= 3; order++) {
		for (u32 i = 0; i < b->fetches; i++) {
			if (order_of(&b->fetch[i]) != order || !needed[i])
				continue;
			b->entry_fetches += order == 0;
			moved[i] = used;
			sorted[used++] = b->fetch[i];
		}
	}
	for (u32 i = 0; i < b->nodes; i++)
		if (b->node[i].kind == NODE_FETCH)
			b->node[i].a = moved[b->node[i].a];
	memcpy(b->fetch, sorted, used * sizeof(*sorted));
	b->fetches = used;
}

static u32 value_bytes(const struct probe_fetch *f)
{
	return f->type == TYPE_STRING || f->type == TYPE_STRV ? 2 + PROBE_STRING_MAX : 8u * f->count;
}

/* Words of the stack that are fetched must be among those that the library looks at. */
static void cover_stack(struct probe_body *b, const struct probe_fetch *f)
{
	u32 word = f->from == FROM_STACK ? f->index : f->from == FROM_ARG && f->index > 6 ? f->index - 6u : 0;

	if (word > b->stack)
		b->stack = word;
}

static bool check_fetches(struct parser *p, enum probe_role role)
{
	struct probe_body *b = p->body;
	u32 bytes = 0;

	b->stack_from += b->stack_from && b->sret;
	for (u32 i = 0; i < b->fetches; i++) {
		struct fetch *f = &b->fetch[i];

		if (b->entry && (f->at_exit || role == ROLE_TABLE))
			return parse_fail(p, f->at, "expected a value that is there before the call: the row has the flag entry");
		if (b->sret && f->what.from == FROM_ARG)
			f->what.index++;
		cover_stack(b, &f->what);
		bytes += value_bytes(&f->what);
		if (bytes > PROBE_VALUES_MAX)
			return parse_fail(p, f->at, "expected values of at most %d bytes in one row; a text counts %d, a number 8",
					  PROBE_VALUES_MAX, 2 + PROBE_STRING_MAX);
	}
	return true;
}

static bool check_unless(struct parser *p, enum probe_role role, const char *at)
{
	bool is_call = role != ROLE_TABLE && role != ROLE_GETTER && role != ROLE_MODULE && role != ROLE_BUILTIN;

	return is_call || !p->body->unless || parse_fail(p, at, "expected no 'unless=' in a row that records no calls");
}

bool check_row(struct parser *p, enum probe_role role, const char *at)
{
	struct walk w = { .p = p, .b = p->body };

	if (!check_module(p, role) || !check_keys(&w, role) || !check_needed(p, role, at) || !check_time(p, role, at) ||
	    !check_table(p, role, at) || !check_getter(p, role) || !check_unless(p, role, at))
		return false;
	order_fetches(p->body);
	return check_fetches(p, role);
}
