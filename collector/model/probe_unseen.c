/*
 * probe_unseen.c - libraries that were at work and could not be seen: files that hold them in one piece. And rows that saw nothing.
 *
 * Rows of role module name such files. One that was loaded by processes in which no function of the row's probe file was called is
 * told of in the summary, so that an empty trace is not taken for a library that did nothing. A row that somebody wrote for this
 * program, and that found no function, is told of as well: its symbol may be misspelled.
 */
#include "../probe/glob.h"
#include "inside.h"
#include <stdio.h>

enum { LOADED_MAX = 1024, UNFOUND_MAX = 5 };

static const char *base_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* What was found is not enough: a library for C programs may lie beside the module that has all of it inside. */
static bool was_called(const struct proc *p, const struct probe_rule *rule)
{
	u32 i;

	for (i = 0; i < p->probes.sites; i++) {
		const struct probe_site *site = p->probes.site[i];

		if (site && site->called && site->rule && site->rule->file == rule->file)
			return true;
	}
	return false;
}

static void note(struct model *m, const struct proc *p, const struct module *module, const struct probe_rule *rule)
{
	struct loaded_library *l, key;

	memset(&key, 0, sizeof(key));
	key.key.library = probe_name_once(m, rule->preset ? rule->preset : rule->domain, "?");
	key.key.path = probe_name_once(m, module->path, "?");
	HASH_FIND(hh, m->probes.loaded, &key.key, sizeof(key.key), l);
	if (!l && HASH_COUNT(m->probes.loaded) < LOADED_MAX) {
		l = new_zeroed(1, sizeof(*l));
		l->key = key.key;
		HASH_ADD(hh, m->probes.loaded, key, sizeof(l->key), l);
	}
	if (l)
		l->seen |= was_called(p, rule);
}

void unseen_close(struct model *m, const struct proc *p)
{
	const struct probe_set *set = probe_set_of(m);
	u32 row, i;

	for (row = 0; set && row < probes_count(set); row++) {
		const struct probe_rule *rule = probes_rule(set, row);

		for (i = 0; rule->role == ROLE_MODULE && i < p->p.modules; i++)
			if (p->p.module[i].path && glob_fits(rule->symbol, base_of(p->p.module[i].path)))
				note(m, p, &p->p.module[i], rule);
	}
}

static int by_library(const void *a, const void *b)
{
	const struct unseen *x = a, *y = b;
	int order = strcmp(x->library, y->library);

	return order ? order : strcmp(x->path, y->path);
}

void unseen_found(struct model *m, const struct probe_rule *rule)
{
	if (!m->probes.found)
		m->probes.found = new_zeroed(PROBE_ROWS_MAX, sizeof(*m->probes.found));
	if (rule->number < PROBE_ROWS_MAX)
		m->probes.found[rule->number] = true;
}

static bool is_unfound(const struct model *m, const struct probe_rule *rule)
{
	return !rule->preset && rule->role != ROLE_MODULE && rule->number < PROBE_ROWS_MAX && !(m->probes.found && m->probes.found[rule->number]);
}

static void unfound_finish(struct model *m)
{
	const struct probe_set *set = probe_set_of(m);
	char text[600];
	u32 count = 0, i;

	for (i = 0; set && i < probes_count(set); i++) {
		const struct probe_rule *rule = probes_rule(set, i);

		if (!is_unfound(m, rule))
			continue;
		unseen_found(m, rule);          /* one that stands for several functions is told of once */
		if (++count > UNFOUND_MAX)
			continue;
		snprintf(text, sizeof(text), "%.200s:%u: no call to %.250s was found to probe; mlprof probes --check says what can be seen in a library",
			 rule->file, rule->line, rule->symbol);
		notice_add(m, text);
	}
	if (count > UNFOUND_MAX) {
		snprintf(text, sizeof(text), "... and %u more rows found no call to probe", count - UNFOUND_MAX);
		notice_add(m, text);
	}
}

void unseen_finish(struct model *m)
{
	struct loaded_library *l, *next;

	m->s.unseen = new_zeroed(HASH_COUNT(m->probes.loaded), sizeof(*m->s.unseen));
	HASH_ITER(hh, m->probes.loaded, l, next)
		if (!l->seen)
			m->s.unseen[m->s.unseens++] = (struct unseen) { l->key.library, l->key.path };
	unfound_finish(m);
	if (m->s.unseens)
		qsort(m->s.unseen, m->s.unseens, sizeof(*m->s.unseen), by_library);
}

void unseen_release(struct model *m)
{
	struct loaded_library *l, *next;

	HASH_ITER(hh, m->probes.loaded, l, next) {
		HASH_DEL(m->probes.loaded, l);
		free(l);
	}
	free(m->probes.found);
	free(m->s.unseen);
}
