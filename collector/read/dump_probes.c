/*
 * dump_probes.c - what the values of a probed call are, for `mlprof dump`: the rows and functions that the stream told of before.
 */
#include "dump.h"
#include "../probe/probe.h"
#include "../util/array.h"
#include <string.h>
#include <uthash.h>

enum { SOURCE_MAX = 16 << 20 };

struct dump_site {
	struct { u64 pid, born, id; } key;
	const struct probe_rule *rule;
	UT_hash_handle hh;
	char symbol[];
};

struct dump_probes {
	struct buf source;
	struct probe_set *set;          /* NULL until the first function comes */
	struct dump_site *sites;
};

static struct dump_probes *probes_of(struct dump *d)
{
	if (!d->probes)
		d->probes = new_zeroed(1, sizeof(*d->probes));
	return d->probes;
}

static const struct probe_rule *rule_of(struct dump_probes *p, u64 row)
{
	struct probe_error why;

	if (!p->set) {
		p->set = probes_new();
		if (p->set && p->source.used)
			probes_add_source(p->set, p->source.at, p->source.used, &why);
	}
	return p->set && row < UINT32_MAX ? probes_rule(p->set, (u32)row) : NULL;
}

static struct dump_site *find(const struct dump_probes *p, const struct chunk_head *h, u64 id)
{
	struct { u64 pid, born, id; } key = { h->pid, h->born, id };
	struct dump_site *s;

	HASH_FIND(hh, p->sites, &key, sizeof(key), s);
	return s;
}

static void new_site(struct dump_probes *p, const struct chunk_head *h, const struct event *e)
{
	const struct rec_probe_site *r = EVENT_BODY(e, probe_site);
	struct dump_site *s;

	if (find(p, h, r->id))
		return;
	s = new_zeroed(1, sizeof(*s) + e->text_len + 1);
	s->key.pid = h->pid;
	s->key.born = h->born;
	s->key.id = r->id;
	s->rule = rule_of(p, r->row);
	memcpy(s->symbol, e->text, e->text_len);
	HASH_ADD(hh, p->sites, key, sizeof(s->key), s);
}

static void put_keys(struct dump *d, const struct dump_site *s, const struct probe_values *values)
{
	struct probe_scope scope = { .values = values, .symbol = s->symbol };
	char text[PROBE_NAME_MAX];
	u32 i;

	for (i = 0; i < probe_keys(s->rule); i++) {
		const char *quote = probe_key_is_text(s->rule, i) ? "\"" : "";

		if (!probe_text(s->rule, probe_key(s->rule, i), &scope, text, sizeof(text)))
			continue;
		dump_put(d, " %s=%s", probe_key(s->rule, i), quote);
		dump_plain(d, text, (u32)strlen(text));
		dump_put(d, "%s", quote);
	}
}

static void put_call(struct dump *d, const struct dump_probes *p, const struct chunk_head *h, const struct event *e)
{
	const struct rec_probe *r = EVENT_BODY(e, probe);
	const struct dump_site *s = find(p, h, PROBE_SITE(r->site));
	struct probe_values values;

	if (!s)
		return;
	dump_put(d, " ");
	dump_plain(d, s->symbol, (u32)strlen(s->symbol));
	if (s->rule && probe_read(s->rule, e->text, e->text_len, PROBE_BAD(r->site), &values))
		put_keys(d, s, &values);
}

void dump_probed(struct dump *d, const struct chunk_head *h, const struct event *e)
{
	struct dump_probes *p = probes_of(d);

	if (e->type == EVENT_probe_rows && !p->set && p->source.used + e->text_len <= SOURCE_MAX)
		buf_add(&p->source, e->text, e->text_len);
	else if (e->type == EVENT_probe_site)
		new_site(p, h, e);
	else if (e->type == EVENT_probe)
		put_call(d, p, h, e);
}

void dump_probes_free(struct dump *d)
{
	struct dump_site *s, *next;

	if (!d->probes)
		return;
	HASH_ITER(hh, d->probes->sites, s, next) {
		HASH_DEL(d->probes->sites, s);
		free(s);
	}
	if (d->probes->set)
		probes_free(d->probes->set);
	buf_release(&d->probes->source);
	free(d->probes);
	d->probes = NULL;
}
