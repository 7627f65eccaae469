/*
 * probes.c - probed calls: which row a function has, what its values say, and who is told.
 *
 * The source of the rows is part of the stream, so that a recording means the same when it is replayed; it is parsed when
 * the session begins. A record has raw values; the row makes numbers and names of them. `when=` decides whether a call
 * counts at all, `ok=` whether it did what it says: a call that failed is shown, but moves nothing.
 */
#include "inside.h"
#include "symbols.h"
#include <stdio.h>

enum { SOURCE_MAX = 16 << 20, SITES_MAX = 1 << 16, NAMES_MAX = 1 << 16, ARGS_BYTES = 4096 };
#define PROBE_NUMBER (1ull << 39)       /* far above the numbers that programs give; see flow_id() of the trace */
#define FLOPS_MAX 1e30

/* ---- rows --------------------------------------------------------------------------------- */

void probe_rows_early(struct model *m, const struct event *e)
{
	if (m->probes.source.used + e->text_len <= SOURCE_MAX)
		buf_add(&m->probes.source, e->text, e->text_len);
}

struct probe_set *probe_set_of(struct model *m)
{
	struct probe_table *t = &m->probes;
	struct probe_error why;

	if (!t->set) {
		t->set = probes_new();
		if (t->set && t->source.used)
			probes_add_source(t->set, t->source.at, t->source.used, &why);
		buf_release(&t->source);
	}
	return t->set;
}

static const struct probe_rule *rule_of(struct model *m, u64 row)
{
	const struct probe_set *set = probe_set_of(m);

	return set && row < UINT32_MAX ? probes_rule(set, (u32)row) : NULL;
}

const char *probe_name_once(struct model *m, const char *text, const char *otherwise)
{
	struct known_text *t;
	size_t len = strlen(text);

	HASH_FIND(hh, m->probes.names, text, len, t);
	if (t)
		return t->text;
	if (otherwise && HASH_COUNT(m->probes.names) >= NAMES_MAX) {
		m->s.losses.texts++;
		return otherwise;
	}
	return text_once(&m->probes.names, text, len);
}

/* ---- sites -------------------------------------------------------------------------------- */

static bool has_rates(const struct probe_rule *rule)
{
	u32 i;

	for (i = 0; i < probe_keys(rule); i++)
		if (probe_rate_unit(probe_key(rule, i)))
			return true;
	return false;
}

static struct probe_site *new_site(struct model *m, const char *symbol, const struct probe_rule *rule)
{
	struct probe_site *site = new_zeroed(1, sizeof(*site));
	char *function = symbols_demangled(symbol, false);

	site->rule = rule;
	site->symbol = text_copy(symbol, strlen(symbol));
	site->demangled = symbols_demangled(symbol, true);
	site->function = probe_name_once(m, function ? function : symbol, NULL);
	site->has_rates = rule && has_rates(rule);
	site->domain = rule ? word_hash(rule->domain) : 0;
	free(function);
	return site;
}

static void put_site(struct proc *p, u32 id, struct probe_site *site)
{
	struct probes *all = &p->probes;

	if (id >= all->sites) {
		u32 before = all->site_room;

		ARRAY_ROOM(all->site, all->site_room, id + 1);
		memset(all->site + before, 0, (all->site_room - before) * sizeof(*all->site));
		all->sites = id + 1;
	}
	all->site[id] = site;
}

static struct probe_site *own_site(const struct proc *p, u32 id)
{
	return id < p->probes.sites ? p->probes.site[id] : NULL;
}

void probe_site_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_probe_site *r = EVENT_BODY(e, probe_site);
	const struct probe_rule *rule = rule_of(m, r->row);
	char *symbol;

	(void)s;
	m->s.losses.unknown_ids += !rule || r->id >= SITES_MAX;
	if (rule)
		unseen_found(m, rule);
	if (r->id >= SITES_MAX || own_site(p, (u32)r->id))
		return;
	symbol = text_copy(e->text, e->text_len);
	put_site(p, (u32)r->id, new_site(m, symbol, rule));
	free(symbol);
}

/* A child made by fork goes on with its parent's numbers. */
static struct probe_site *site_of(struct model *m, struct proc *p, u32 id)
{
	struct probe_site *site = own_site(p, id), *old = NULL;
	struct proc *q;
	u32 i;

	if (site || id >= SITES_MAX)
		return site;
	for (q = elder(p), i = 0; q && !old && i < GENERATIONS_MAX; q = elder(q), i++)
		old = own_site(q, id);
	if (!old)
		return NULL;
	site = new_site(m, old->symbol, old->rule);
	put_site(p, id, site);
	return site;
}

/* ---- values ------------------------------------------------------------------------------- */

static const char *scope_name(void *to, u64 handle)
{
	const struct probed *c = to;

	return handle_name(c->p, handle);
}

static bool scope_current(void *to, u64 handle, const char *what, u64 *value)
{
	const struct probed *c = to;

	return handle_value(c->p, handle, what, value);
}

/* "main._omp_fn.0"; where nobody knows it, its place. */
static const char *symbol_at(const struct probed *c, u64 address)
{
	const struct module *module = process_module(&c->p->p, address + 1, c->p->epoch);
	const struct listener *l = &c->m->listener;
	const char *function = module && l->function ? l->function(l->functions, module, address) : NULL;
	const char *path = module && module->path ? module->path : "", *slash = strrchr(path, '/');
	char text[PROBE_NAME_MAX];

	if (function)
		snprintf(text, sizeof(text), "%s", function);
	else if (module)
		snprintf(text, sizeof(text), "%s+0x%llx", slash ? slash + 1 : path, (unsigned long long)(address - module->bias));
	else
		snprintf(text, sizeof(text), "0x%llx", (unsigned long long)address);
	return probe_name_once(c->m, text, "?");
}

/* Kept while no module goes: then another function may be at its address. */
static const char *scope_symbol(void *to, u64 address)
{
	const struct probed *c = to;
	struct probes *all = &c->p->probes;
	struct handle_name *n;

	if (all->symbols_epoch != c->p->epoch)
		handle_names_release(&all->symbols);
	all->symbols_epoch = c->p->epoch;
	HASH_FIND(hh, all->symbols, &address, sizeof(address), n);
	if (n)
		return n->name;
	if (HASH_COUNT(all->symbols) >= NAMES_MAX)
		return NULL;
	n = new_zeroed(1, sizeof(*n));
	n->handle = address;
	n->name = symbol_at(c, address);
	HASH_ADD(hh, all->symbols, handle, sizeof(n->handle), n);
	return n->name;
}

bool probed_number(const struct probed *c, const char *key, i64 *value)
{
	return probe_number(c->rule, key, &c->scope, NULL, value);
}

struct handle probed_handle(const struct probed *c, const char *key)
{
	i64 value = 0;
	bool known = probed_number(c, key, &value);

	return (struct handle) { (u64)value, known };
}

bool probed_is(const struct probed *c, const char *key)
{
	i64 value;

	return probed_number(c, key, &value) && value;
}

u64 probed_new_number(struct probed *c)
{
	return PROBE_NUMBER | ++c->p->probes.numbers;
}

u64 probed_last_number(const struct probed *c)
{
	return PROBE_NUMBER | c->p->probes.numbers;
}

/* Values that it would only have had on its return say nothing of a call that did not. */
static void count_unread(struct probed *c)
{
	u32 i;

	for (i = 0; i < c->values.count && !c->call.unwound; i++)
		if (!c->values.at[i].known) {
			c->m->s.losses.probe_values++;
			c->unread = true;
		}
}

bool probed_is_paced(const struct probed *c)
{
	bool works = c->call.kind == CALL_SPAN || c->call.kind == CALL_ENQUEUE || c->call.kind == CALL_COPY;

	return works && !c->late && !c->around;
}

static void measure(struct probed *c)
{
	double flops = 0;
	i64 bytes = 0;

	if (probed_number(c, "bytes", &bytes) && bytes > 0)
		c->bytes = (u64)bytes;
	if (probe_number(c->rule, "flops", &c->scope, &flops, NULL) && flops > 0 && flops < FLOPS_MAX)
		c->flops = flops;
}

/* ---- arguments ---------------------------------------------------------------------------- */

struct args {
	char *at;
	size_t used, size;
};

__attribute__((format(printf, 2, 3)))
static void add_arg(struct args *a, const char *format, ...)
{
	va_list list;
	int n;

	va_start(list, format);
	n = vsnprintf(a->at + a->used, a->size - a->used, format, list);
	va_end(list);
	if (n > 0 && (size_t)n + 1 < a->size - a->used)
		a->used += (size_t)n + 1;
}

static double per_ns(const struct probed *c, double amount)
{
	u64 ns = session_ns(&c->m->s, c->call.end) - session_ns(&c->m->s, c->call.begin);

	return ns ? amount / (double)ns : 0;
}

static void add_measures(struct args *a, const struct probed *c)
{
	if (c->bytes)
		add_arg(a, "bytes=%llu", (unsigned long long)c->bytes);
	if (c->flops > 0)
		add_arg(a, "flops=%.0f", c->flops);
	if (!probed_is_paced(c))
		return;
	if (c->flops > 0)
		add_arg(a, "gflops=%.3f", per_ns(c, c->flops));
	if (c->bytes && c->rule->role == ROLE_COPY)
		add_arg(a, "gb_per_s=%.3f", per_ns(c, (double)c->bytes));
}

/* What the row shows, after `first` if that is given. */
struct arg_text probed_args(const struct probed *c, char *to, size_t size, const char *first)
{
	struct args a = { to, 0, size };
	char value[PROBE_NAME_MAX];
	u32 i;

	if (first)
		add_arg(&a, "%s", first);
	for (i = 0; c->rule && i < probe_keys(c->rule); i++)
		if (probe_key_shown(c->rule, i) && probe_text(c->rule, probe_key(c->rule, i), &c->scope, value, sizeof(value)))
			add_arg(&a, "%s=%s", probe_key(c->rule, i), value);
	return (struct arg_text) { a.at, (u32)a.used };
}

/* Those of the call itself. */
static struct arg_text call_args(const struct probed *c, char *to, size_t size)
{
	struct arg_text shown = probed_args(c, to, size, NULL);
	struct args a = { to, shown.length, size };

	if (c->rule)
		add_measures(&a, c);
	if (c->call.name != c->site->function)
		add_arg(&a, "function=%s", c->site->function);
	return (struct arg_text) { a.at, (u32)a.used };
}

/* ---- roles -------------------------------------------------------------------------------- */

static void counter(struct probed *c)
{
	struct counter_point point = { .name = c->call.name, .ticks = c->call.end };
	char unit[PROBE_NAME_MAX];

	if (!probe_number(c->rule, "value", &c->scope, &point.value, NULL)) {
		c->m->s.losses.probe_values += !c->unread;
		return;
	}
	if (!c->m->listener.counter)
		return;
	if (probe_text(c->rule, "unit", &c->scope, unit, sizeof(unit)))
		point.unit = probe_name_once(c->m, unit, "");
	c->m->listener.counter(c->m->listener.to, &c->p->p, &point);
}

static void name_thread(struct probed *c)
{
	thread_call(c->m, c->p, c->s->tid, c->call.name);
}

/* NO_CALL: not worth a slice. `take` is for calls that went well; those named by their row alone are named by it. */
enum { NO_CALL = CALL_KINDS };

static const struct role {
	u32 kind;
	bool named;                     /* else after the function */
	void (*take)(struct probed *c);
	bool once;                      /* not of a call around one that did the same */
} roles[PROBE_ROLES] = {
	[ROLE_SPAN] = { CALL_SPAN, true, probed_span },
	[ROLE_DISPATCH] = { CALL_ENQUEUE, false, probed_dispatch, .once = true },
	[ROLE_SUBMIT] = { CALL_SUBMIT, true, probed_submit },
	[ROLE_WAIT] = { CALL_WAIT, true, probed_wait },
	[ROLE_COPY] = { CALL_COPY, true, probed_copy, .once = true },
	[ROLE_ALLOC] = { CALL_MEMORY, false, probed_alloc },
	[ROLE_FREE] = { CALL_MEMORY, false, probed_free },
	[ROLE_RETAIN] = { NO_CALL, false, probed_retain },
	[ROLE_COUNTER] = { NO_CALL, true, counter },
	[ROLE_MARK] = { CALL_MARK, true, NULL },
	[ROLE_THREAD] = { NO_CALL, true, name_thread },
	[ROLE_BIND] = { NO_CALL, false, probed_bind },
	[ROLE_ALIAS] = { NO_CALL, false, probed_alias },
	[ROLE_SET] = { NO_CALL, false, probed_set },
	[ROLE_TIME] = { NO_CALL, false, probed_time },
	[ROLE_TABLE] = { NO_CALL, false, NULL },
	[ROLE_BUILTIN] = { NO_CALL, false, NULL },
	[ROLE_GETTER] = { NO_CALL, false, NULL },
	[ROLE_MODULE] = { NO_CALL, false, NULL },
};

static const struct role unknown_role = { CALL_SPAN, false, NULL };

/* A span of a row that marks entries only is a moment, and so is a thing set that has a name. */
static u32 kind_of(const struct probed *c, const struct role *role)
{
	if (c->rule && (role->kind == CALL_SPAN ? c->rule->entry : c->rule->role == ROLE_SET && probe_has(c->rule, "name")))
		return CALL_MARK;
	return role->kind;
}

static const char *name_of(const struct probed *c, const struct role *role)
{
	char name[PROBE_NAME_MAX];

	if (!role->named && c->call.kind != CALL_MARK)
		return c->site->function;
	probe_name(c->rule, &c->scope, name, sizeof(name));
	return probe_name_once(c->m, name, c->site->function);
}

static void tell(struct probed *c)
{
	char args[ARGS_BYTES];

	if (c->p->probes.told++ < CALLS_FULL)
		c->call.args = call_args(c, args, sizeof(args));
	call_tell(c->m, c->p, c->s, &c->call);
	c->call.args = (struct arg_text) { 0 };
}

static void do_once(struct probed *c, const struct role *role)
{
	c->around = role->once && probed_is_around(c, 0);
	if (!c->around)
		role->take(c);
	else if (probed_is(c, "wait"))          /* the other may not have blocked */
		probed_wait(c);
	if (role->once)
		probed_has_done(c, 0);
}

static void take(struct probed *c, const struct role *role)
{
	c->call.kind = kind_of(c, role);
	c->call.name = name_of(c, role);
	if (role->take && c->good)
		do_once(c, role);
	if (c->call.kind == CALL_WAIT) {
		struct call wait = c->call;

		wait.name = c->site->function;
		wait.error = c->call.failed;
		call_sum_up(c->m, c->s, &wait);
	}
	if (c->call.kind != NO_CALL)
		tell(c);
	probed_sum_up(c);
}

/* ---- records ------------------------------------------------------------------------------ */

static void known_call(struct probed *c)
{
	count_unread(c);
	if (!probe_holds(c->rule, "when", &c->scope))
		return;
	c->good = !c->call.unwound && probe_holds(c->rule, "ok", &c->scope);
	c->call.failed = !c->call.unwound && !c->good;
	if (roles[c->rule->role].kind != NO_CALL)       /* else its numbers are of what others do: cur(handle,flops) */
		measure(c);
	take(c, &roles[c->rule->role]);
}

void probe_event(struct model *m, struct proc *p, struct stream *s, const struct event *e)
{
	const struct rec_probe *r = EVENT_BODY(e, probe);
	struct probe_site *site = site_of(m, p, PROBE_SITE(r->site));
	struct probed c = { .m = m, .p = p, .s = s, .site = site };

	if (!site) {
		m->s.losses.unknown_ids++;
		return;
	}
	site->called = true;
	c.rule = site->rule;
	c.scope = (struct probe_scope) {
		.values = &c.values, .symbol = site->symbol, .demangled = site->demangled, .to = &c, .name_of = scope_name,
		.current = scope_current, .symbol_of = scope_symbol,
	};
	c.call = (struct call) {
		.begin = call_begin(p, r->begin, e->ticks), .end = e->ticks, .node = node_of(m, p, s, (u32)r->node & NODE_MASK),
		.unwound = PROBE_LEFT(r->site) & PROBE_UNWOUND,
	};
	if (!c.rule)
		take(&c, &unknown_role);
	else if (probe_read(c.rule, e->text, e->text_len, PROBE_BAD(r->site), &c.values))
		known_call(&c);
	else
		m->s.losses.records++;
}

/* ---- the end ------------------------------------------------------------------------------ */

void probes_close(struct model *m, struct proc *p)
{
	unseen_close(m, p);
	nests_close(m, &p->probes);
	libraries_close(m, p);
}

void probes_release(struct proc *p)
{
	struct probes *all = &p->probes;
	u32 i;

	for (i = 0; i < all->sites; i++) {
		if (!all->site[i])
			continue;
		free(all->site[i]->symbol);
		free(all->site[i]->demangled);
		free(all->site[i]);
	}
	free(all->site);
	handles_release(all);
	libraries_release(all);
	heaps_release(all);
	nests_release(all);
	done_calls_release(all);
	*all = (struct probes) { 0 };
}

void probe_table_release(struct model *m)
{
	struct probe_table *t = &m->probes;
	struct probe_sum_index *i, *next;
	struct known_text *n, *next_name;

	HASH_ITER(hh, t->sums, i, next) {
		HASH_DEL(t->sums, i);
		free(i);
	}
	HASH_ITER(hh, t->names, n, next_name) {
		HASH_DEL(t->names, n);
		free(n);
	}
	unseen_release(m);
	buf_release(&t->source);
	if (t->set)
		probes_free(t->set);
	free(m->s.probe);
}
