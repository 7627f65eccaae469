/*
 * table.c - rows -> the bytes of the file "probes" that the library maps (mlprof/probes.h).
 */
#include "inside.h"

struct table {
	struct buf rows, fetches, texts, slots;
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

/* The row that names the function; probes_add() has seen that there is one. */
static u32 row_of(const struct probe_set *set, const char *name)
{
	u32 i = 0;

	while (i < set->rules && strcmp(set->rule[i]->symbol, name))
		i++;
	return i;
}

static void put_slots(struct table *t, const struct probe_set *set, u32 row)
{
	const struct probe_body *b = set->rule[row]->body;

	for (u32 i = 0; i < b->slots; i++) {
		struct probe_slot slot = { row, b->slot[i].index, row_of(set, b->slot[i].name) };

		buf_add(&t->slots, (const char *)&slot, sizeof(slot));
	}
}

static u16 flags_of(const struct probe_rule *rule)
{
	const struct probe_body *b = rule->body;
	bool table = rule->role == ROLE_TABLE, careful = !b->trust || b->careful;

	return (u16)((strpbrk(rule->symbol, "*?") ? PROBE_GLOB : 0) | (b->entry ? PROBE_ENTRY : 0) | (b->callstack ? PROBE_CALLSTACK : 0) |
		     (b->data ? PROBE_DATA : 0) | (careful ? PROBE_CAREFUL : 0) | (table ? PROBE_TABLE : 0) |
		     (table && probe_has(rule, "size") ? PROBE_SIZED : 0) | (rule->role == ROLE_MODULE ? PROBE_MODULE : 0) |
		     (rule->role == ROLE_BUILTIN ? PROBE_BUILTIN : 0) |
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
			.stack = (u16)b->stack, .min_ns = b->min_ns,
		};
	}
	row.flags = flags_of(rule);
	row.symbol = put_text(t, rule->symbol);
	row.prefix = (u32)strcspn(rule->symbol, "*?");
	buf_add(&t->rows, (const char *)&row, sizeof(row));
	*last = row;
}

static void put_all(struct table *t, const struct probe_set *set)
{
	struct probe_row last = { 0 };
	const struct probe_body *body = NULL;

	for (u32 i = 0; i < set->rules; i++) {
		put_row(t, set->rule[i], &last, body);
		put_slots(t, set, i);
		body = set->rule[i]->body;
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
	struct table t = { 0 };

	put_all(&t, set);
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
