/*
 * summary_text_probes.c - probed calls for people: the longest, by name; how fast tokens are read and written; libraries of which nothing could
 * be seen.
 *
 * Calls are inside of others: the order is that of the time that they did not spend in probed calls of their own.
 */
#include "summary_text.h"

enum { PROBES_MAX = 10, UNSEEN_MAX = 8 };

/* "  (blas, 93.1 GFLOP/s, 2 failed)" */
struct notes {
	struct text *t;
	bool any;
};

static void begin_note(struct notes *n)
{
	buf_text(&n->t->b, n->any ? ", " : "  (");
	n->any = true;
}

static void note_rate(struct notes *n, double amount, u64 ns, double per, const char *unit)
{
	double rate = ns ? amount * per / (double)ns : 0;

	if (!(rate > 0))
		return;
	begin_note(n);
	if (rate < 1000)
		buf_print(&n->t->b, "%.3g ", rate);
	else
		buf_print(&n->t->b, "%s ", units_count(rate));
	text_safe(&n->t->b, unit);
	buf_text(&n->t->b, "/s");
}

static void note_count(struct notes *n, u64 count, const char *what)
{
	if (!count)
		return;
	begin_note(n);
	buf_print(&n->t->b, "%s %s", units_count(count), what);
}

static void notes(struct text *t, const struct probe_sum *p)
{
	struct notes n = { .t = t };

	if (p->preset) {
		begin_note(&n);
		text_safe(&t->b, p->preset);
	}
	note_rate(&n, p->paced_flops.amount, p->paced_flops.ns, 1, "GFLOP");
	if (!strcmp(p->role, "copy"))
		note_rate(&n, p->paced_bytes.amount, p->paced_bytes.ns, 1, "GB");
	for (u32 i = 0; i < p->rates; i++)
		note_rate(&n, p->rate[i].total, p->total_ns, 1e9, p->rate[i].unit);
	note_count(&n, p->failed, "failed");
	note_count(&n, p->unwound, "left by an exception");
	if (n.any)
		buf_char(&t->b, ')');
}

static void row(struct text *t, const struct probe_sum *p)
{
	buf_print(&t->b, "%*s %10s %10s %10s %10s %10s %10s  ", FIRST_COLUMN, units_time(p->total_ns), units_time(p->self_ns), units_count(p->calls),
		  units_time(p->calls ? p->total_ns / p->calls : 0), units_time(p->min_ns), units_time(p->max_ns),
		  p->bytes ? units_bytes((i64)p->bytes) : "");
	text_safe(&t->b, p->name);
	notes(t, p);
	buf_char(&t->b, '\n');
}

static const char *per_second(u64 amount, u64 ns)
{
	return amount && ns ? units_count((double)amount * 1e9 / (double)ns) : "";
}

static void token_row(struct text *t, const struct probe_sum *p)
{
	const struct token_sum *k = &p->tokens;

	buf_print(&t->b, "%*s %10s %10s %10s ", FIRST_COLUMN, units_count(k->steps), units_time(k->loop_ns), per_second(k->steps, k->loop_ns),
		  units_count(k->batch_tokens));
	buf_print(&t->b, "%10s %10s  ", units_time(k->batch_ns), per_second(k->batch_tokens, k->batch_ns));
	text_safe(&t->b, p->name);
	buf_char(&t->b, '\n');
}

/* One by one in a loop, and many at once. */
void text_tokens(struct text *t)
{
	const struct session *s = t->s;
	bool any = false;

	for (u32 i = 0; i < s->probes; i++) {
		if (!s->probe[i].tokens.steps && !s->probe[i].tokens.batches)
			continue;
		if (!any)
			text_table(t, "Tokens", "steps", "       time   tokens/s   at once       time   tokens/s  name");
		any = true;
		token_row(t, &s->probe[i]);
	}
	if (any)
		buf_char(&t->b, '\n');
}

void text_probes(struct text *t)
{
	const struct session *s = t->s;

	if (!s->probes)
		return;
	text_table(t, "Probes", "total", "       self      calls    average   shortest    longest      bytes  name");
	for (u32 i = 0; i < s->probes && i < PROBES_MAX; i++)
		row(t, &s->probe[i]);
	if (s->probes > PROBES_MAX)
		buf_print(&t->b, "                 ... and %u more\n", s->probes - PROBES_MAX);
	if (s->short_probes)
		buf_print(&t->b, "                 ... and %s calls that were shorter than their rows' min=\n", units_count(s->short_probes));
	buf_char(&t->b, '\n');
}

/* Files by their names alone: the paths are in the JSON. */
void text_unseen(struct text *t)
{
	for (u32 i = 0; i < t->s->unseens && i < UNSEEN_MAX; i++) {
		const struct unseen *u = &t->s->unseen[i];
		const char *slash = strrchr(u->path, '/');

		text_heading(t, i ? "" : "Unseen");
		text_safe(&t->b, u->library);
		buf_text(&t->b, ": ");
		text_safe(&t->b, slash ? slash + 1 : u->path);
		buf_text(&t->b, " was loaded, but it holds the library in one piece: no call to it can be seen\n");
	}
	if (t->s->unseens > UNSEEN_MAX)
		buf_print(&t->b, "           ... and %u more\n", t->s->unseens - UNSEEN_MAX);
}
