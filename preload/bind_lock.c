/*
 * bind_lock.c - work with ld.so's own lock held.
 *
 * While modules are bound, none may come, go, or be half relocated. ld.so's list lock (dl_iterate_phdr) does not see to the
 * last, and under it ld.so cannot be asked for symbols. The lock that does is held by dlsym() while it calls the resolver of an
 * indirect function, and it is a recursive one: so ours is such a resolver. fork takes care of that lock, too.
 */
#include "bind.h"
#include "context.h"
#include <dlfcn.h>

struct work { void (*f)(void *); void *argument; };

static void nothing(void) { }

/* Called with no work if somebody else looks our symbol up. */
static __attribute__((used)) void (*do_work(void))(void)
{
	struct work *w = tls.locked_work;

	tls.locked_work = NULL;
	if (w)
		w->f(w->argument);
	return nothing;
}

HOOKED void mlprof_locked(void) __attribute__((ifunc("do_work")));

void bind_with_lock(void (*f)(void *), void *argument)
{
	struct work w = { f, argument };

	tls.locked_work = &w;
	bind_real_dlsym(RTLD_DEFAULT, "mlprof_locked");
	tls.locked_work = NULL;
}
