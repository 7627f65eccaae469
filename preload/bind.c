/*
 * bind.c - the table of entry points, and dlsym's answers.
 */
#include "bind.h"
#include "context.h"
#include "elf_image.h"
#include "hook.h"
#include "text.h"

enum { TABLE = 2048 };

static const struct { u32 bit; const struct entry *entries; } apis[] = { { API_OPENCL, opencl_entries }, { API_VULKAN, vulkan_entries },
									      { API_IREE, iree_entries } };

void *(*bind_next_dlsym)(void *, const char *);
void *(*bind_next_dlvsym)(void *, const char *, const char *);

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
	__atomic_store_n(&bind_next_dlsym, (__typeof__(bind_next_dlsym))elf_next_symbol("dlsym"), __ATOMIC_RELEASE);
}

void *bind_real_dlsym(void *handle, const char *name)
{
	find_next();
	return bind_next_dlsym(handle, name);
}

/*
 * What dlsym is to answer: 0 what the real one says; 1 NULL; else a wrapper. The real one is asked once, so that dlerror
 * says what it would. RTLD_NEXT is left alone: what is next hangs on who asks. RTLD_DEFAULT means the same for us and for
 * the program, unless its module is out of the global scope.
 */
__attribute__((visibility("hidden"))) void *bind_pick(void *handle, const char *name, const void *caller, const char *version)
{
	const struct entry *e;
	void *real;

	find_next();
	if (!started || tls.guard || guest.state != GUEST_ON)
		return NULL;
	bind_modules();
	e = entry_find(name);
	if (!e || handle == RTLD_NEXT || bind_is_driver(caller))
		return NULL;
	real = version ? bind_next_dlvsym(handle, name, version) : bind_next_dlsym(handle, name);
	if (!real)
		return handle == RTLD_DEFAULT ? NULL : (void *)1;
	return bind_found(e, real);
}

void bind_start(void)
{
	for (u32 i = 0; i < sizeof apis / sizeof *apis; i++)
		for (const struct entry *e = apis[i].entries; e->name && guest.control->apis & apis[i].bit; e++)
			table_add(e);
	started = guest.control->apis;
	if (started)
		bind_modules();
}
