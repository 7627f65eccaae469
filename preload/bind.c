/*
 * bind.c - the table of entry points, and dlsym's answers.
 */
#include "bind.h"
#include "context.h"
#include "elf_image.h"
#include "hook.h"
#include "probe.h"
#include "text.h"

enum { TABLE = 2048 };

static const struct { u32 bit; const struct entry *entries; } apis[] = { { API_OPENCL, opencl_entries }, { API_VULKAN, vulkan_entries },
									      { API_IREE, iree_entries } };

void *(*bind_next_dlsym)(void *, const char *);
void *(*bind_next_dlvsym)(void *, const char *, const char *);
void *(*bind_next_dlopen)(const char *, int);

static bool started;                    /* the table is filled; before that nothing may be bound */

/* ---- names -------------------------------------------------------------------------- */

static const struct entry *table[TABLE];

static u32 hash_of(const char *name)
{
	u32 h = 2166136261u;

	for (; *name; name++)
		h = (h ^ (u8)*name) * 16777619u;
	return h;
}

static void table_add(const struct entry *e)
{
	u32 i = hash_of(e->name) % TABLE;

	while (table[i])
		i = (i + 1) % TABLE;
	table[i] = e;
}

const struct entry *entry_find(const char *name)
{
	if (name[0] != 'c' && name[0] != 'v' && name[0] != 'i')
		return NULL;
	for (u32 i = hash_of(name) % TABLE; table[i]; i = (i + 1) % TABLE)
		if (text_equal(table[i]->name, name))
			return table[i];
	return NULL;
}

void *bind_found(const struct entry *e, void *real)
{
	if (real == e->wrapper)
		return real;
	if (e->found)
		e->found(real);
	if (e->real)
		__atomic_store_n(e->real, real, __ATOMIC_RELEASE);
	return e->pick ? e->pick(real) : e->wrapper;
}

/* ---- dlsym -------------------------------------------------------------------------- */

/* Before anything else of ours works: the first call may be hook.c's own. */
static void find_next(void)
{
	if (likely(bind_next_dlsym))
		return;
	bind_next_dlvsym = (__typeof__(bind_next_dlvsym))elf_next_symbol("dlvsym");
	bind_next_dlopen = (__typeof__(bind_next_dlopen))elf_next_symbol("dlopen");
	__atomic_store_n(&bind_next_dlsym, (__typeof__(bind_next_dlsym))elf_next_symbol("dlsym"), __ATOMIC_RELEASE);
}

void *bind_real_dlsym(void *handle, const char *name)
{
	find_next();
	return bind_next_dlsym(handle, name);
}

/*
 * ld.so answers RTLD_DEFAULT and RTLD_NEXT by who asks, and it knows that by the return address. So it gets one in the
 * module in question, of a `ret`, which leads back to us.
 */
void *bind_call_returning_to(const void *ret, void *function, void *handle, const char *name, const char *version);

const void *bind_next_ret(const void *code)
{
	enum { FAR = 1 << 20, RET = 0xc3 };
	struct dl_find_object object;
	const u8 *at = code, *end;

	if (_dl_find_object((void *)code, &object) != 0)
		return NULL;
	end = (u64)object.dlfo_map_end - (u64)code > FAR ? at + FAR : (const u8 *)object.dlfo_map_end;
	while (at < end && *at != RET)
		at++;
	return at < end ? at : NULL;
}

void *bind_as(const void *ret, void *handle, const char *name, const char *version)
{
	return ret ? bind_call_returning_to(ret, version ? (void *)bind_next_dlvsym : (void *)bind_next_dlsym, handle, name, version) : NULL;
}

/* What the real one would say to the caller. */
static void *ask(void *handle, const char *name, const void *caller, const char *version)
{
	if (handle == RTLD_NEXT || handle == RTLD_DEFAULT)
		return bind_as(bind_next_ret(caller), handle, name, version);
	return version ? bind_next_dlvsym(handle, name, version) : bind_next_dlsym(handle, name);
}

struct answer { void *real; const char *name; void *stub; };

static void find_stub(void *answer)
{
	struct answer *a = answer;
	bool claimed = bind_claim();

	a->stub = probe_stub(a->real, a->name, false);
	if (claimed)
		bind_release();
}

/* NULL: the program's own call has to be made. */
static void *pick_probe(void *handle, const char *name, const void *caller, const char *version)
{
	struct answer a = { .name = name };

	if (!probe_wants(name, false))
		return NULL;
	a.real = ask(handle, name, caller, version);
	if (!a.real || hook_same_module(a.real, caller))        /* who knows its own function otherwise may compare */
		return NULL;
	bind_with_lock(find_stub, &a);
	return a.stub;
}

static bool is_on(void)
{
	find_next();
	return started && !tls.guard && guest.state == GUEST_ON;
}

/*
 * What dlsym is to answer: 0 what the real one says; 1 NULL; else a wrapper. For a wrapper the real one is asked once, so
 * that dlerror says what it would. RTLD_NEXT is how a library hands on what it defines itself, so it is answered only where a
 * wrapper knows several real functions apart: another one would lead back to that library.
 */
__attribute__((visibility("hidden"))) void *bind_pick(void *handle, const char *name, const void *caller, const char *version)
{
	const struct entry *e;
	void *real;

	if (!is_on())
		return NULL;
	bind_modules();
	e = entry_find(name);
	if (!e)
		return pick_probe(handle, name, caller, version);
	if ((handle == RTLD_NEXT && !e->pick) || bind_is_driver(caller))
		return NULL;
	real = ask(handle, name, caller, version);
	if (!real)
		return handle == RTLD_NEXT || handle == RTLD_DEFAULT ? NULL : (void *)1;
	return bind_found(e, real);
}

/* What the last dlopen brought may not have been followed by a dlsym. */
__attribute__((visibility("hidden"))) void bind_before_dlopen(void)
{
	if (is_on())
		bind_modules();
}

void bind_start(void)
{
	bool probes = probes_start();

	bind_mind_forks();
	for (u32 i = 0; i < sizeof apis / sizeof *apis; i++)
		for (const struct entry *e = apis[i].entries; e->name && guest.control->apis & apis[i].bit; e++)
			table_add(e);
	started = guest.control->apis || probes;
	if (started)
		bind_modules();
}
