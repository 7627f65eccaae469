/*
 * probe_handles.c - what programs call things by: names bound to handles, and what is set on them.
 *
 *   bind   function -> "sgemm"          alias   pipeline -> as the function is called
 *   set    encoder  -> pipeline         so that a dispatch on the encoder can be called "sgemm": name(cur($arg1))
 *
 * Handles are given again when what they stood for is gone; the last word counts.
 */
#include "inside.h"

enum { HANDLES_MAX = 1 << 18 };

/* ---- names -------------------------------------------------------------------------------- */

/* A child made by fork knows what its parent knew. */
const char *handle_name(const struct proc *p, u64 handle)
{
	struct handle_name *n = NULL;
	u32 i;

	for (i = 0; p && !n && i < GENERATIONS_MAX; p = elder(p), i++)
		HASH_FIND(hh, p->probes.names, &handle, sizeof(handle), n);
	return n ? n->name : NULL;
}

static void give_name(struct probed *c, u64 handle, const char *name)
{
	struct probes *all = &c->p->probes;
	struct handle_name *n;

	HASH_FIND(hh, all->names, &handle, sizeof(handle), n);
	if (!n && HASH_COUNT(all->names) >= HANDLES_MAX) {
		c->m->s.losses.texts++;
		return;
	}
	if (!n) {
		n = new_zeroed(1, sizeof(*n));
		n->handle = handle;
		HASH_ADD(hh, all->names, handle, sizeof(n->handle), n);
	}
	n->name = name;
}

void probed_bind(struct probed *c)
{
	struct handle key = probed_handle(c, "key");
	char name[PROBE_NAME_MAX];

	if (key.known && probe_text(c->rule, "name", &c->scope, name, sizeof(name)))
		give_name(c, key.value, probe_name_once(c->m, name, c->site->function));
}

void probed_alias(struct probed *c)
{
	struct handle key = probed_handle(c, "key"), from = probed_handle(c, "from");
	const char *name = from.known ? handle_name(c->p, from.value) : NULL;

	if (key.known && name)
		give_name(c, key.value, name);
}

/* ---- what is set -------------------------------------------------------------------------- */

/* Kinds are words of probe files: their hash stands for them. */
static u64 hash_of(const char *what)
{
	u64 hash = 14695981039346656037ull;

	for (; *what; what++)
		hash = (hash ^ (u8)*what) * 1099511628211ull;
	return hash;
}

bool handle_value(const struct proc *p, u64 handle, const char *what, u64 *value)
{
	struct { u64 handle, what; } key = { handle, hash_of(what) };
	struct handle_value *v = NULL;
	u32 i;

	for (i = 0; p && !v && i < GENERATIONS_MAX; p = elder(p), i++)
		HASH_FIND(hh, p->probes.values, &key, sizeof(key), v);
	if (v)
		*value = v->value;
	return v;
}

static void set_value(struct probed *c, u64 handle, u64 what, u64 value)
{
	struct { u64 handle, what; } key = { handle, what };
	struct probes *all = &c->p->probes;
	struct handle_value *v;

	HASH_FIND(hh, all->values, &key, sizeof(key), v);
	if (!v && HASH_COUNT(all->values) >= HANDLES_MAX) {
		c->m->s.losses.texts++;
		return;
	}
	if (!v) {
		v = new_zeroed(1, sizeof(*v));
		v->key.handle = handle;
		v->key.what = what;
		HASH_ADD(hh, all->values, key, sizeof(v->key), v);
	}
	v->value = value;
}

void probed_set(struct probed *c)
{
	struct handle key = probed_handle(c, "key"), value = probed_handle(c, "val");
	char what[PROBE_NAME_MAX] = "";

	if (!key.known || !value.known)
		return;
	probe_text(c->rule, "as", &c->scope, what, sizeof(what));
	set_value(c, key.value, hash_of(what), value.value);
}

void handle_names_release(struct handle_name **names)
{
	struct handle_name *n, *next;

	HASH_ITER(hh, *names, n, next) {
		HASH_DELETE(hh, *names, n);
		free(n);
	}
}

void handles_release(struct probes *all)
{
	struct handle_value *v, *next_value;

	handle_names_release(&all->names);
	handle_names_release(&all->symbols);
	HASH_ITER(hh, all->values, v, next_value) {
		HASH_DEL(all->values, v);
		free(v);
	}
}
