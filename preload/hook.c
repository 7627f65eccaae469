/*
 * hook.c - finds the real functions behind our hooks.
 */
#include "hook.h"
#include <link.h>

struct reals real;

static const struct {
	const char *name;
	void **at;
} hooks[] = {
#define X(name) { #name, (void **)&real.name },
	HOOKS(X)
#undef X
};

/* Our own definition again would be an endless loop: that happens when a second copy of us is loaded. */
void *hook_next(const char *name)
{
	void *p = dlsym(RTLD_NEXT, name);

	return p && hook_same_module(p, (const void *)hook_next) ? NULL : p;
}

bool hook_same_module(const void *a, const void *b)
{
	struct dl_find_object x, y;

	return _dl_find_object((void *)a, &x) == 0 && _dl_find_object((void *)b, &y) == 0 &&
	       x.dlfo_map_start == y.dlfo_map_start;
}

/*
 * dlsym may want memory while it looks malloc up; it gets boot memory then, because this returns
 * at once when it is already at work.
 */
void hooks_resolve(void)
{
	static int state;           /* 0 not yet, 1 at work, 2 done */
	int expected = 0;

	if (!__atomic_compare_exchange_n(&state, &expected, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return;
	for (unsigned i = 0; i < sizeof hooks / sizeof *hooks; i++)
		*hooks[i].at = hook_next(hooks[i].name);
	__atomic_store_n(&state, 2, __ATOMIC_RELEASE);
}
