/*
 * probe_sums.c - probed calls summed up by name, over all processes.
 *
 * A key `rate_UNIT=EXPR` of a row gives amounts whose sum over the time of the calls is shown as UNIT/s; so does `tokens`.
 */
#include "inside.h"
#include <math.h>

enum { SUMS_MAX = 1 << 15 };

/* NULL: it would be one more than `most`. */
static struct probe_sum_index *find_or_new(struct probed *c, const char *name, u32 most)
{
	struct probe_sum_index probe, *i;

	memset(&probe, 0, sizeof(probe));
	probe.key.name = name;
	probe.key.rule = c->rule;
	HASH_FIND(hh, c->m->probes.sums, &probe.key, sizeof(probe.key), i);
	if (i || HASH_COUNT(c->m->probes.sums) >= most)
		return i;
	i = new_zeroed(1, sizeof(*i));
	i->key = probe.key;
	i->sum = (struct probe_sum) {
		.name = name, .function = c->site->function, .role = probe_role_name[c->rule ? c->rule->role : ROLE_SPAN],
		.preset = c->rule ? c->rule->preset : NULL,
	};
	HASH_ADD(hh, c->m->probes.sums, key, sizeof(i->key), i);
	return i;
}

/* Spans and marks are different by their names, all else by the function; so are they where there are too many. Functions are only as many as
 * sites. */
static struct probe_sum_index *index_of(struct probed *c)
{
	bool named = c->call.kind == CALL_SPAN || c->call.kind == CALL_MARK;
	struct probe_sum_index *i = named ? find_or_new(c, c->call.name, SUMS_MAX) : NULL;

	if (named && !i)
		c->m->s.losses.texts++;
	return i ? i : find_or_new(c, c->site->function, UINT32_MAX);
}

static void add_rate(struct probe_sum *s, const char *unit, double amount)
{
	u32 i = 0;

	while (i < s->rates && strcmp(s->rate[i].unit, unit))
		i++;
	if (i == PROBE_RATES || !isfinite(amount))
		return;
	if (i == s->rates)
		s->rate[s->rates++].unit = unit;
	s->rate[i].total += amount;
}

static void add_rates(struct probed *c, struct probe_sum *s)
{
	double amount;
	u32 i;

	for (i = 0; i < probe_keys(c->rule); i++) {
		const char *key = probe_key(c->rule, i), *unit = probe_rate_unit(key);

		if (unit && probe_number(c->rule, key, &c->scope, &amount, NULL))
			add_rate(s, unit, amount);
	}
}

void probed_sum_up(struct probed *c)
{
	struct probe_sum_index *i = index_of(c);
	u64 own = nest_call(c);
	u64 ns = session_ns(&c->m->s, c->call.end) - session_ns(&c->m->s, c->call.begin);
	struct probe_sum *s = &i->sum;

	if (!s->calls++ || ns < s->min_ns)
		s->min_ns = ns;
	if (ns > s->max_ns)
		s->max_ns = ns;
	s->total_ns += ns;
	s->self_ns += session_ns(&c->m->s, c->call.begin + own) - session_ns(&c->m->s, c->call.begin);
	s->failed += c->call.failed;
	s->unwound += c->call.unwound;
	if (!c->good)
		return;
	s->bytes += c->bytes;
	s->flops += c->flops;
	if (probed_is_paced(c) && c->flops > 0)
		pace_add(&s->paced_flops, c->flops, ns);
	if (probed_is_paced(c) && c->bytes)
		pace_add(&s->paced_bytes, (double)c->bytes, ns);
	if (c->site->has_rates) {
		add_rates(c, s);
		probed_tokens(c, s);
	}
}

static int compare(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int longest_first(const void *a, const void *b)
{
	const struct probe_sum *x = a, *y = b;

	if (x->self_ns != y->self_ns)
		return x->self_ns > y->self_ns ? -1 : 1;
	if (x->total_ns != y->total_ns)
		return x->total_ns > y->total_ns ? -1 : 1;
	if (x->calls != y->calls)
		return x->calls > y->calls ? -1 : 1;
	return compare(x->name, y->name) ? compare(x->name, y->name) : compare(x->preset, y->preset);
}

void probe_sums_finish(struct model *m)
{
	struct probe_sum_index *i, *next;

	m->s.probe = new_zeroed(HASH_COUNT(m->probes.sums), sizeof(*m->s.probe));
	HASH_ITER(hh, m->probes.sums, i, next)
		m->s.probe[m->s.probes++] = i->sum;
	if (m->s.probes)
		qsort(m->s.probe, m->s.probes, sizeof(*m->s.probe), longest_first);
}
