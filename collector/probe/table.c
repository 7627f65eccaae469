/*
 * table.c - rows -> the bytes of the file "probes" that the library maps (mlprof/probes.h).
 */
#include "inside.h"

#include "../util/array.h"

struct table {
	struct buf rows, fetches, texts, slots;
	const struct probe_set *set;
	u32 *dotted, dots, dotted_cap;          /* rows whose symbol has a dot: those that a slot may name */
};

static u32 put_text(struct table *t, const char *text)
{
	u32 at = (u32)t->texts.used;

	buf_add(&t->texts, text, strlen(text) + 1);
	return at;
}

static u32 put_fetches(struct table *t, const struct probe_body *b)
{
	u32 first = (u32)(t->fetches.used / sizeof(struct probe_fetch));

	for (u32 i = 0; i < b->fetches; i++)
		buf_add(&t->fetches, (const char *)&b->fetch[i].what, sizeof(b->fetch[i].what));
	return first;
}

static void find_dotted(struct table *t)
{
	for (u32 i = 0; i < t->set->rules; i++) {
		if (!strchr(t->set->rule[i]->symbol, '.'))
			continue;
		ARRAY_ROOM(t->dotted, t->dotted_cap, t->dots + 1);
		t->dotted[t->dots++] = i;
	}
}

/* The row that names the function; probes_add() has seen that there is one. */
static u32 row_of(const struct table *t, const char *name)
{
	u32 i = 0;

	while (strcmp(t->set->rule[t->dotted[i]]->symbol, name))
		i++;
	return t->dotted[i];
}

static void put_slots(struct table *t, u32 row)
{
	const struct probe_body *b = t->set->rule[row]->body;

	for (u32 i = 0; i < b->slots; i++) {
		struct probe_slot slot = { row, b->slot[i].index, row_of(t, b->slot[i].name) };

		buf_add(&t->slots, (const char *)&slot, sizeof(slot));
	}
}

static u16 flags_of(const struct probe_rule *rule)
{
	const struct probe_body *b = rule->body;
	bool table = rule->role == ROLE_TABLE, careful = !b->trust || b->careful;

	return (u16)((rule_is_wild(rule) ? PROBE_GLOB : 0) | (b->entry ? PROBE_ENTRY : 0) | (b->callstack ? PROBE_CALLSTACK : 0) |
		     (b->data ? PROBE_DATA : 0) | (careful ? PROBE_CAREFUL : 0) | (table ? PROBE_TABLE : 0) |
		     (table && probe_has(rule, "size") ? PROBE_SIZED : 0) | (rule->role == ROLE_MODULE ? PROBE_MODULE : 0) |
		     (rule->role == ROLE_BUILTIN ? PROBE_BUILTIN : 0) | (b->unless ? PROBE_UNLESS : 0) |
		     (rule->role == ROLE_GETTER ? PROBE_GETTER : 0));
}

/* Rows of one line share their fetches. */
static void put_row(struct table *t, const struct probe_rule *rule, struct probe_row *last, const struct probe_body *last_body)
{
	const struct probe_body *b = rule->body;
	struct probe_row row = *last;

	if (b != last_body) {
		row = (struct probe_row) {
			.library = b->library ? put_text(t, b->library) : PROBE_ANY,
			.fetch = put_fetches(t, b), .fetches = (u16)b->fetches, .entry_fetches = (u16)b->entry_fetches,
			.stack = (u16)b->stack, .stack_from = b->stack_from, .min_ns = b->min_ns, .unless = b->unless ? put_text(t, b->unless) : PROBE_ANY,
		};
	}
	row.flags = flags_of(rule);
	row.symbol = put_text(t, rule->symbol);
	row.prefix = rule->prefix;
	buf_add(&t->rows, (const char *)&row, sizeof(row));
	*last = row;
}

static void put_all(struct table *t)
{
	struct probe_row last = { 0 };
	const struct probe_body *body = NULL;

	find_dotted(t);
	for (u32 i = 0; i < t->set->rules; i++) {
		const struct probe_rule *rule = t->set->rule[i];

		put_row(t, rule, &last, body);
		put_slots(t, i);
		body = rule->body;
	}
	while (t->texts.used % 8)
		buf_char(&t->texts, 0);
}

static void move(struct buf *to, struct buf *from)
{
	if (from->used)
		buf_add(to, from->at, from->used);
	buf_release(from);
}

bool probes_compile(const struct probe_set *set, struct buf *to)
{
	struct table t = { .set = set };

	put_all(&t);
	free(t.dotted);
	bool good = !t.rows.failed && !t.fetches.failed && !t.texts.failed && !t.slots.failed;
	struct probe_head head = {
		.magic = PROBE_MAGIC, .version = PROBE_VERSION, .rows = set->rules, .fetches = (u32)(t.fetches.used / sizeof(struct probe_fetch)),
		.text_bytes = (u32)t.texts.used, .slots = (u32)(t.slots.used / sizeof(struct probe_slot)),
	};

	buf_add(to, (const char *)&head, sizeof(head));
	move(to, &t.rows);
	move(to, &t.fetches);
	move(to, &t.texts);
	move(to, &t.slots);
	return good && !to->failed;
}
