/*
 * eval.c - the values of one call -> numbers and texts of the row's keys. The record may hold anything.
 *
 * Unknown is a value: what could not be read, what nobody bound a name to, a division by zero. It spreads through
 * arithmetic and shows as "?" in texts.
 */
#include "glob.h"
#include "inside.h"

#include "../util/array.h"

#include <math.h>
#include <stdio.h>

/* ---- the record --------------------------------------------------------------------------- */

static u32 read_text(struct probe_value *v, const u8 *at, u32 left)
{
	u16 length;

	if (left < sizeof(length))
		return 0;
	memcpy(&length, at, sizeof(length));
	if (length == PROBE_STRING_BAD)
		return sizeof(length);
	if (length > PROBE_STRING_MAX || left - sizeof(length) < length)
		return 0;
	v->known = true;
	v->text = (const char *)at + sizeof(length);
	v->length = length;
	return (u32)sizeof(length) + length;
}

static u32 read_numbers(struct probe_value *v, const u8 *at, u32 left, bool bad)
{
	u32 bytes = v->count * 8u;

	if (left < bytes)
		return 0;
	memcpy(v->number, at, bytes);
	v->known = !bad;
	return bytes;
}

/* As many as the value before it says. */
static void cut_array(struct probe_value *v, const struct probe_value *length)
{
	i64 there = (i64)length->number[0];

	v->known = v->known && length->known;
	v->more = there > v->count;
	v->count = there < 0 ? 0 : v->more ? v->count : (u8)there;
}

bool probe_read(const struct probe_rule *rule, const void *text, u32 length, u32 bad, struct probe_values *values)
{
	const struct probe_body *b = rule->body;
	const u8 *at = text;
	u32 left = length;

	values->count = b->fetches;
	for (u32 i = 0; i < b->fetches; i++) {
		const struct probe_fetch *f = &b->fetch[i].what;
		struct probe_value *v = &values->at[i];
		bool string = f->type == TYPE_STRING || f->type == TYPE_STRV;

		*v = (struct probe_value) { .type = f->type, .count = string ? 1 : f->count };
		if (!left)
			continue;
		u32 taken = string ? read_text(v, at, left) : read_numbers(v, at, left, bad >> i & 1);

		if (!taken)
			return false;
		if (f->counted && i)
			cut_array(v, v - 1);
		at += taken;
		left -= taken;
	}
	return !left;
}

/* ---- values ------------------------------------------------------------------------------- */

enum kind { UNKNOWN, WHOLE, REAL, TEXT, ARRAY };

struct value {
	enum kind kind;
	bool pointer;
	bool large;                             /* WHOLE: without a sign and above INT64_MAX; `whole` has its bits */
	i64 whole;
	double real;                            /* of a WHOLE, too */
	const char *text;
	u32 length;
	const struct probe_value *array;
};

struct asked {
	const struct probe_rule *rule;
	const struct probe_body *body;
	const struct probe_scope *scope;
};

static const struct value unknown = { UNKNOWN };

static struct value whole(i64 n)
{
	return (struct value) { .kind = WHOLE, .whole = n, .real = (double)n };
}

static struct value whole_unsigned(u64 n)
{
	return (struct value) { .kind = WHOLE, .large = n > INT64_MAX, .whole = (i64)n, .real = (double)n };
}

static struct value real(double x)
{
	if (!isfinite(x))
		return unknown;
	i64 cut = x >= 9.2e18 ? INT64_MAX : x <= -9.2e18 ? INT64_MIN : (i64)x;

	return (struct value) { .kind = REAL, .whole = cut, .real = x };
}

static struct value text(const char *at, size_t length)
{
	return at ? (struct value) { .kind = TEXT, .text = at, .length = (u32)length } : unknown;
}

static bool is_number(const struct value *v)
{
	return v->kind == WHOLE || v->kind == REAL;
}

static struct value element(const struct probe_value *v, u32 i)
{
	float narrow;
	double wide;

	if (!v->known || i >= v->count)
		return unknown;
	if (v->type == TYPE_F32) {
		memcpy(&narrow, &v->number[i], sizeof(narrow));
		return real(narrow);
	}
	if (v->type == TYPE_F64) {
		memcpy(&wide, &v->number[i], sizeof(wide));
		return real(wide);
	}
	return v->type == TYPE_U64 ? whole_unsigned(v->number[i]) : whole((i64)v->number[i]);
}

static const struct probe_value *fetched(const struct asked *q, u32 number)
{
	const struct probe_values *values = q->scope->values;

	return values && number < values->count && values->at[number].known ? &values->at[number] : NULL;
}

static struct value fetch_value(const struct asked *q, const struct node *n)
{
	const struct probe_value *v = fetched(q, n->a);
	struct value result;

	if (!v)
		return unknown;
	if (v->type == TYPE_STRING || v->type == TYPE_STRV)
		return text(v->text, v->length);
	result = q->body->fetch[n->a].what.count > 1 ? (struct value) { .kind = ARRAY, .array = v } : element(v, 0);
	result.pointer = n->pointer;
	return result;
}

/* ---- operators ---------------------------------------------------------------------------- */

__extension__ typedef __int128 wide;            /* all that 64 bits hold, with a sign or without */

static bool are_whole(const struct value *a, const struct value *b)
{
	return a->kind == WHOLE && b->kind == WHOLE;
}

static wide wide_of(const struct value *v)
{
	return v->large ? (wide)(u64)v->whole : v->whole;
}

static struct value fitted(wide n)
{
	if (n >= INT64_MIN && n <= INT64_MAX)
		return whole((i64)n);
	return n > 0 && n <= UINT64_MAX ? whole_unsigned((u64)n) : real((double)n);
}

static struct value add(const struct value *a, const struct value *b)
{
	return are_whole(a, b) ? fitted(wide_of(a) + wide_of(b)) : real(a->real + b->real);
}

static struct value subtract(const struct value *a, const struct value *b)
{
	return are_whole(a, b) ? fitted(wide_of(a) - wide_of(b)) : real(a->real - b->real);
}

static struct value multiply(const struct value *a, const struct value *b)
{
	wide n;

	return are_whole(a, b) && !__builtin_mul_overflow(wide_of(a), wide_of(b), &n) ? fitted(n) : real(a->real * b->real);
}

static bool can_divide(const struct value *a, const struct value *b)
{
	return are_whole(a, b) && b->whole;
}

/* 7/2 is 3.5: nobody who writes 2/3*N*N*N means 0. */
static struct value divide(const struct value *a, const struct value *b)
{
	if (can_divide(a, b) && wide_of(a) % wide_of(b) == 0)
		return fitted(wide_of(a) / wide_of(b));
	return b->real == 0 ? unknown : real(a->real / b->real);
}

static struct value remainder_of(const struct value *a, const struct value *b)
{
	return can_divide(a, b) ? fitted(wide_of(a) % wide_of(b)) : unknown;
}

/* What has no sign gets none: 1<<63 is above 0, (-1)<<63 below. */
static struct value bits(enum operator op, const struct value *a, const struct value *b)
{
	u64 x = (u64)a->whole, y = (u64)b->whole, n;
	bool sign = a->whole < 0 && !a->large && (op != OP_BITAND || !b->large);

	if (!are_whole(a, b) || (op != OP_BITAND && y > 63))
		return unknown;
	n = op == OP_BITAND ? x & y : op == OP_SHL ? x << y : x >> y;
	return sign ? whole((i64)n) : whole_unsigned(n);
}

static int compare(const struct value *a, const struct value *b)
{
	if (are_whole(a, b))
		return (wide_of(a) > wide_of(b)) - (wide_of(a) < wide_of(b));
	return (a->real > b->real) - (a->real < b->real);
}

static struct value binary(enum operator op, const struct value *a, const struct value *b)
{
	switch (op) {
	case OP_ADD: return add(a, b);
	case OP_SUB: return subtract(a, b);
	case OP_MUL: return multiply(a, b);
	case OP_DIV: return divide(a, b);
	case OP_MOD: return remainder_of(a, b);
	case OP_BITAND: case OP_SHL: case OP_SHR: return bits(op, a, b);
	case OP_EQ: return whole(compare(a, b) == 0);
	case OP_NE: return whole(compare(a, b) != 0);
	case OP_LT: return whole(compare(a, b) < 0);
	case OP_GT: return whole(compare(a, b) > 0);
	case OP_LE: return whole(compare(a, b) <= 0);
	case OP_GE: return whole(compare(a, b) >= 0);
	case OP_AND: return whole(a->real != 0 && b->real != 0);
	case OP_OR: return whole(a->real != 0 || b->real != 0);
	}
	return unknown;
}

/* ---- nodes -------------------------------------------------------------------------------- */

static struct value value_of(const struct asked *q, u32 n);

/* && and || may be sure of their result with one side alone. */
static struct value binary_value(const struct asked *q, const struct node *n)
{
	struct value a = value_of(q, n->a), b = value_of(q, n->b);
	const struct value *sure = is_number(&a) ? &a : is_number(&b) ? &b : NULL;

	if (is_number(&a) && is_number(&b))
		return binary(n->op, &a, &b);
	if (sure && n->op == OP_AND && sure->real == 0)
		return whole(0);
	if (sure && n->op == OP_OR && sure->real != 0)
		return whole(1);
	return unknown;
}

static struct value product(const struct probe_value *array)
{
	struct value all = whole(1);

	for (u32 i = 0; i < array->count; i++) {
		struct value e = element(array, i);

		all = multiply(&all, &e);
	}
	return array->more ? unknown : all;
}

/* product() and last() */
static struct value array_value(const struct asked *q, const struct node *n)
{
	struct value a = value_of(q, n->a);

	if (a.kind != ARRAY)
		return unknown;
	if (n->op == CALL_PRODUCT)
		return product(a.array);
	return a.array->more || !a.array->count ? unknown : element(a.array, a.array->count - 1u);
}

static struct value call_value(const struct asked *q, const struct node *n)
{
	const struct probe_scope *s = q->scope;
	struct value a = value_of(q, n->a), b = n->b == NONE ? whole(0) : value_of(q, n->b);
	const char *found;
	u64 handle = (u64)a.whole, current;

	if (!is_number(&a) || !is_number(&b))
		return unknown;
	switch ((enum function)n->op) {
	case CALL_NAME:
		found = s->name_of ? s->name_of(s->to, handle) : NULL;
		return text(found, found ? strlen(found) : 0);
	case CALL_SYM:
		found = s->symbol_of ? s->symbol_of(s->to, handle) : NULL;
		return text(found, found ? strlen(found) : 0);
	case CALL_CUR:
		return s->current && s->current(s->to, handle, n->word, &current) ? whole((i64)current) : unknown;
	case CALL_MIN:
		return compare(&a, &b) <= 0 ? a : b;
	case CALL_MAX:
		return compare(&a, &b) >= 0 ? a : b;
	case CALL_LOG2:
		return a.real > 0 ? real(log2(a.real)) : unknown;
	case CALL_PRODUCT: case CALL_LAST: case CALL_OR:
		break;
	}
	return unknown;
}

static struct value either(const struct asked *q, const struct node *n)
{
	struct value a = value_of(q, n->a);

	return a.kind == UNKNOWN ? value_of(q, n->b) : a;
}

static struct value negative(struct value a)
{
	struct value zero = whole(0);

	return is_number(&a) ? subtract(&zero, &a) : unknown;
}

/* Texts with braces are not here: they are put together by put_node(). */
static struct value value_of(const struct asked *q, u32 number)
{
	const struct node *n = &q->body->node[number];
	struct value a;

	switch ((enum node_kind)n->kind) {
	case NODE_NUMBER:
		return n->real ? real(n->number) : whole(n->whole);
	case NODE_FETCH:
		return fetch_value(q, n);
	case NODE_LETTER:
		return whole(q->rule->letter);
	case NODE_WORD:
		return text(n->word, strlen(n->word));
	case NODE_KEY:
		return value_of(q, q->body->key[n->a].node);
	case NODE_INDEX:
		a = value_of(q, q->body->key[n->a].node);
		return a.kind == ARRAY ? element(a.array, n->b) : unknown;
	case NODE_NOT:
		a = value_of(q, n->a);
		return is_number(&a) ? whole(a.real == 0) : unknown;
	case NODE_MINUS:
		return negative(value_of(q, n->a));
	case NODE_BINARY:
		return binary_value(q, n);
	case NODE_CALL:
		if (n->op == CALL_OR)
			return either(q, n);
		return n->op == CALL_PRODUCT || n->op == CALL_LAST ? array_value(q, n) : call_value(q, n);
	case NODE_TEXT:
		break;
	}
	return unknown;
}

/* ---- texts -------------------------------------------------------------------------------- */

struct out {
	char *to;
	size_t used, size;
};

static void put(struct out *o, const char *at, size_t length)
{
	size_t room = o->size - 1 - o->used;

	length = length < room ? length : room;
	memcpy(o->to + o->used, at, length);
	o->used += length;
	o->to[o->used] = 0;
}

static void put_number(struct out *o, const struct value *v)
{
	char digits[40];

	if (v->kind == REAL)
		snprintf(digits, sizeof(digits), "%.6g", v->real);
	else if (v->pointer)
		snprintf(digits, sizeof(digits), "0x%llx", (unsigned long long)v->whole);
	else if (v->large)
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)v->whole);
	else
		snprintf(digits, sizeof(digits), "%lld", (long long)v->whole);
	put(o, digits, strlen(digits));
}

static void put_array(struct out *o, const struct value *v)
{
	for (u32 i = 0; i < v->array->count; i++) {
		struct value e = element(v->array, i);

		if (i)
			put(o, "x", 1);
		e.pointer = v->pointer;
		put_number(o, &e);
	}
	if (v->array->more)
		put(o, "x...", 4);
}

static bool put_value(struct out *o, const struct value *v)
{
	if (v->kind == TEXT)
		put(o, v->text, v->length);
	else if (v->kind == ARRAY)
		put_array(o, v);
	else if (v->kind != UNKNOWN)
		put_number(o, v);
	return v->kind != UNKNOWN;
}

/*
 * "int ns::Class<a, b>::member<c>(int) const": the qualified name is ns::Class<a, b>::member<c>, its scope Class<a, b>,
 * its base member<c>.
 */
struct name {
	const char *full, *scope, *base, *end;
	size_t scope_length;
};

/* Steps over <...> or (...) as a whole; `operator<` and the like are not brackets. */
static const char *over(const char *at, const char *start)
{
	int depth = 0;

	if (at - start >= 8 && !memcmp(at - 8, "operator", 8)) {
		at += *at == '(' ? 2 : strspn(at, "<>=-");
		return at;
	}
	do {
		depth += (*at == '<' || *at == '(') - (*at == '>' || *at == ')');
		at++;
	} while (*at && depth > 0);
	return at;
}

static struct name name_parts(const char *text)
{
	struct name n = { .full = text, .scope = text, .base = text };
	const char *at = text, *anonymous = "(anonymous namespace)";

	while (*at) {
		if (*at == '(' && strncmp(at, anonymous, strlen(anonymous)) && !(at - text >= 8 && !memcmp(at - 8, "operator", 8)))
			break;
		if (*at == '<' || *at == '(') {
			at = over(at, text);
		} else if (at[0] == ':' && at[1] == ':') {
			n.scope = n.base;
			n.scope_length = (size_t)(at - n.base);
			n.base = at += 2;
		} else if (*at == ' ' && strncmp(n.base, "operator", 8)) {
			n.full = n.scope = n.base = ++at;       /* a return type stood before it */
			n.scope_length = 0;
		} else {
			at++;
		}
	}
	n.end = at;
	return n;
}

static void put_name(struct out *o, const struct probe_scope *s, enum part_kind kind)
{
	const char *symbol = s->symbol ? s->symbol : "?", *full = s->demangled ? s->demangled : symbol;
	struct name n = name_parts(full);

	if (kind == PART_SYMBOL)
		put(o, symbol, strlen(symbol));
	else if (kind == PART_DEMANGLED)
		put(o, full, strlen(full));
	else if (kind == PART_SCOPE && n.scope_length)
		put(o, n.scope, n.scope_length);
	else if (kind == PART_FUNCTION)
		put(o, n.full, (size_t)(n.end - n.full));
	else
		put(o, n.base, (size_t)(n.end - n.base));
}

/* Of a row without a wildcard: the symbol. */
static void put_wild(struct out *o, const struct asked *q)
{
	const char *symbol = q->scope->symbol ? q->scope->symbol : "?";
	size_t length;
	const char *wild = glob_wild(q->rule->symbol, symbol, &length);

	put(o, length ? wild : symbol, length ? length : strlen(symbol));
}

static bool put_node(struct out *o, const struct asked *q, u32 number)
{
	const struct node *n = &q->body->node[number];

	if (n->kind == NODE_KEY)
		return put_node(o, q, q->body->key[n->a].node);
	if (n->kind == NODE_CALL && n->op == CALL_OR)
		return put_node(o, q, n->a) || put_node(o, q, n->b);
	if (n->kind != NODE_TEXT) {
		struct value v = value_of(q, number);

		return put_value(o, &v);
	}
	for (u32 i = n->a; i < n->b; i++) {
		const struct part *part = &q->body->part[i];

		if (part->kind == PART_PLAIN)
			put(o, part->text, strlen(part->text));
		else if (part->kind == PART_LETTER)
			put(o, &q->rule->letter, 1);
		else if (part->kind == PART_WILD)
			put_wild(o, q);
		else if (part->kind != PART_KEY)
			put_name(o, q->scope, part->kind);
		else if (!put_node(o, q, q->body->key[part->key].node))
			put(o, "?", 1);
	}
	return true;
}

/* ---- keys --------------------------------------------------------------------------------- */

u32 probe_keys(const struct probe_rule *rule)
{
	return rule->body->keys;
}

const char *probe_key(const struct probe_rule *rule, u32 i)
{
	return i < rule->body->keys ? rule->body->key[i].name : NULL;
}

bool probe_key_shown(const struct probe_rule *rule, u32 i)
{
	return i < rule->body->keys && rule->body->key[i].shown;
}

static u32 find(const struct probe_rule *rule, const char *key)
{
	for (u32 i = 0; i < rule->body->keys; i++)
		if (!strcmp(rule->body->key[i].name, key))
			return i;
	return NONE;
}

bool probe_has(const struct probe_rule *rule, const char *key)
{
	return find(rule, key) != NONE;
}

bool probe_key_is_text(const struct probe_rule *rule, u32 i)
{
	const struct probe_body *b = rule->body;
	u32 at = i < b->keys ? b->key[i].node : NONE;

	while (at != NONE && (b->node[at].kind == NODE_KEY || (b->node[at].kind == NODE_CALL && b->node[at].op == CALL_OR)))
		at = b->node[at].kind == NODE_KEY ? b->key[b->node[at].a].node : b->node[at].a;
	if (at == NONE)
		return false;
	const struct node *n = &b->node[at];

	if (n->kind == NODE_FETCH)
		return b->fetch[n->a].what.type >= TYPE_STRING || b->fetch[n->a].what.count > 1;
	return n->kind == NODE_TEXT || n->kind == NODE_WORD || (n->kind == NODE_CALL && (n->op == CALL_NAME || n->op == CALL_SYM));
}

bool probe_number(const struct probe_rule *rule, const char *key, const struct probe_scope *scope, double *value, i64 *number)
{
	struct asked q = { rule, rule->body, scope };
	u32 k = find(rule, key);
	struct value v = k == NONE ? unknown : value_of(&q, rule->body->key[k].node);

	if (!is_number(&v))
		return false;
	if (value)
		*value = v.real;
	if (number)
		*number = v.whole;
	return true;
}

bool probe_text(const struct probe_rule *rule, const char *key, const struct probe_scope *scope, char *to, size_t size)
{
	struct asked q = { rule, rule->body, scope };
	struct out o = { to, 0, size };
	u32 k = find(rule, key);

	if (size)
		*to = 0;
	return size && k != NONE && put_node(&o, &q, rule->body->key[k].node);
}

bool probe_holds(const struct probe_rule *rule, const char *key, const struct probe_scope *scope)
{
	double value;

	return !probe_has(rule, key) || (probe_number(rule, key, scope, &value, NULL) && value != 0);
}

void probe_name(const struct probe_rule *rule, const struct probe_scope *scope, char *to, size_t size)
{
	struct out o = { to, 0, size };

	if (!size || (probe_text(rule, "name", scope, to, size) && *to))
		return;
	put_name(&o, scope, PART_FUNCTION);
}

const char *const probe_direction_name[DIRECTION_UNKNOWN] = { "h2h", "h2d", "d2h", "d2d", "fill" };

enum probe_direction probe_direction(const struct probe_rule *rule, const struct probe_scope *scope)
{
	char word[8];
	i64 code;

	if (probe_number(rule, "dir", scope, NULL, &code))
		return code >= 0 && code <= DIRECTION_D2D ? (enum probe_direction)code : DIRECTION_UNKNOWN;
	if (probe_text(rule, "dir", scope, word, sizeof(word)))
		for (u32 i = 0; i < DIRECTION_UNKNOWN; i++)
			if (!strcmp(word, probe_direction_name[i]))
				return i;
	return DIRECTION_UNKNOWN;
}
