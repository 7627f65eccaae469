/*
 * probe_handles.c - what programs call things by: names bound to handles, and what is set on them.
 *
 *   bind   function -> "sgemm"          alias   pipeline -> as the function is called
 *   set    encoder  -> pipeline         so that a dispatch on the encoder can be called "sgemm": name(cur($arg1))
 *
 * Handles are given again when what they stood for is gone; the last word counts. A handle that is the address of memory
 * labels that, where the row says in which heap it lies.
 *
 * Numbers of a bind go with its name, as values that are set: cur($arg1,flops). What is called the same has the same.
 */
#include "inside.h"
#include "symbols.h"
#include <stdio.h>

enum { HANDLES_MAX = 1 << 18 };

/* ---- names -------------------------------------------------------------------------------- */

/* A child made by fork knows what its parent knew. */
static const struct handle_name *find_name(const struct proc *p, u64 handle)
{
	struct handle_name *n = NULL;
	u32 i;

	for (i = 0; p && !n && i < GENERATIONS_MAX; p = elder(p), i++)
		HASH_FIND(hh, p->probes.names, &handle, sizeof(handle), n);
	return n;
}

const char *handle_name(const struct proc *p, u64 handle)
{
	const struct handle_name *n = find_name(p, handle);

	return n ? n->name : NULL;
}

static void give_name(struct probed *c, u64 handle, const char *name, const struct probe_rule *by)
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
	n->by = by;
}

/* ---- what is set -------------------------------------------------------------------------- */

/* Kinds are words of probe files: their hash stands for them. */
u64 word_hash(const char *word)
{
	u64 hash = 14695981039346656037ull;

	for (; *word; word++)
		hash = (hash ^ (u8)*word) * 1099511628211ull;
	return hash;
}

static const struct handle_value *find_value(const struct proc *p, u64 handle, const char *what)
{
	struct { u64 handle, what; } key = { handle, word_hash(what) };
	struct handle_value *v = NULL;
	u32 i;

	for (i = 0; p && !v && i < GENERATIONS_MAX; p = elder(p), i++)
		HASH_FIND(hh, p->probes.values, &key, sizeof(key), v);
	return v;
}

bool handle_value(const struct proc *p, u64 handle, const char *what, u64 *value)
{
	const struct handle_value *v = find_value(p, handle, what);

	if (v)
		*value = v->value;
	return v;
}

u64 handle_set_after(const struct proc *p, u64 handle, const char *what)
{
	const struct handle_value *v = find_value(p, handle, what);

	return v ? v->after : 0;
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
	v->after = probed_last_number(c);
}

void probed_set(struct probed *c)
{
	struct handle key = probed_handle(c, "key"), value = probed_handle(c, "val");
	char what[PROBE_NAME_MAX] = "";

	if (!key.known || !value.known)
		return;
	probe_text(c->rule, "as", &c->scope, what, sizeof(what));
	set_value(c, key.value, word_hash(what), value.value);
}

/* ---- bind, alias -------------------------------------------------------------------------- */

/* What a bind's row itself is about; all its other keys that are numbers belong to the handle. */
static bool is_number_of(const struct probe_rule *rule, u32 i)
{
	static const char *const own[] = { "key", "name", "heap", "when", "ok" };
	u32 k;

	for (k = 0; k < sizeof(own) / sizeof(*own); k++)
		if (!strcmp(probe_key(rule, i), own[k]))
			return false;
	return !probe_key_is_text(rule, i);
}

/* Those of whatever had the handle before. */
static void forget_numbers(struct probed *c, u64 handle)
{
	const struct handle_name *n = find_name(c->p, handle);
	u64 old;
	u32 i;

	for (i = 0; n && n->by && i < probe_keys(n->by); i++)
		if (is_number_of(n->by, i) && handle_value(c->p, handle, probe_key(n->by, i), &old))
			set_value(c, handle, word_hash(probe_key(n->by, i)), 0);
}

/*
 * Of a mangled name that was cut: its parts up to the first template's parameters, _ZN2at6native4fillIL... -> at::native::fill<...>, and
 * how it ends, as that may be all that tells it from others. False: it has none, or it is whole.
 */
static bool readable_start(const char *name, char *to, size_t size)
{
	const char *at = name + 2 + !strncmp(name, "_ZN", 3), *end = name + strlen(name);
	size_t used = 0;

	if (strncmp(name, "_Z", 2) || end - name < PROBE_STRING_MAX)
		return false;
	while (*at >= '1' && *at <= '9') {
		char *part;
		unsigned long length = strtoul(at, &part, 10);

		if (length > (unsigned long)(end - part) || used + length + 2 >= size)
			break;
		used += (size_t)snprintf(to + used, size - used, "%s%.*s", used ? "::" : "", (int)length, part);
		at = part + length;
	}
	if (used && used + 40 < size)
		snprintf(to + used, size - used, "<...%s>", end - 24);
	return used;
}

/* Kernels of C++ are called as the linker does: shown as people do, without their parameters. */
static const char *shown_name(struct probed *c, const char *name)
{
	char start[PROBE_NAME_MAX], *readable = symbols_demangled(name, false);
	const char *shown = readable ? readable : readable_start(name, start, sizeof(start)) ? start : name;

	shown = probe_name_once(c->m, shown, c->site->function);
	free(readable);
	return shown;
}

void probed_bind(struct probed *c)
{
	struct handle key = probed_handle(c, "key");
	char name[PROBE_NAME_MAX];
	u32 i;

	if (!key.known || !probe_text(c->rule, "name", &c->scope, name, sizeof(name)))
		return;
	forget_numbers(c, key.value);
	give_name(c, key.value, shown_name(c, name), c->rule);
	for (i = 0; i < probe_keys(c->rule); i++) {
		struct handle number = is_number_of(c->rule, i) ? probed_handle(c, probe_key(c->rule, i)) : (struct handle) { 0, false };

		if (number.known)
			set_value(c, key.value, word_hash(probe_key(c->rule, i)), number.value);
	}
	if (probe_has(c->rule, "heap"))
		probed_label(c, key.value, name);
}

void probed_alias(struct probed *c)
{
	struct handle key = probed_handle(c, "key"), from = probed_handle(c, "from");
	const struct handle_name *n = from.known ? find_name(c->p, from.value) : NULL;
	const struct probe_rule *by = n ? n->by : NULL;
	u64 value;
	u32 i;

	if (!key.known || !n || key.value == from.value)
		return;
	forget_numbers(c, key.value);
	give_name(c, key.value, n->name, by);
	for (i = 0; by && i < probe_keys(by); i++)
		if (is_number_of(by, i) && handle_value(c->p, from.value, probe_key(by, i), &value))
			set_value(c, key.value, word_hash(probe_key(by, i)), value);
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
