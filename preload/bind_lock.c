/*
 * bind_lock.c - work with ld.so's own lock held, and who may make sites and open pages.
 *
 * While modules are bound, none may come, go, or be half relocated. ld.so's list lock (dl_iterate_phdr) does not see to the
 * last, and under it ld.so cannot be asked for symbols. The lock that does is held by dlsym() while it calls the resolver of an
 * indirect function, and it is a recursive one: so ours is such a resolver. fork takes care of that lock, too.
 *
 * Tables of functions are bound when a probed call returns. There the program may hold locks that somebody inside of ld.so waits
 * for, so ld.so's lock must not be asked for. What both ways share, the sites and the protection of pages, has a small lock of
 * its own, in which nobody waits for anything.
 *
 * ld.so's list itself is read with a third lock held, which fork does not take care of: see bind_read_list().
 */
#include "bind.h"
#include "context.h"
#include <dlfcn.h>
#include <pthread.h>

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

static u32 holder;                      /* thread number; 0: nobody */

/* A child made by fork has only the thread that made it: what others held is free. */
static bool is_gone(u32 thread)
{
	return sys(SYS_tgkill, sys_getpid(), thread, 0) != 0;
}

bool bind_claim(void)
{
	u32 self = (u32)sys_gettid(), seen = 0;

	while (!__atomic_compare_exchange_n(&holder, &seen, self, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
		if (seen == self)
			return false;
		if (!seen || is_gone(seen))
			continue;               /* `seen` is what will be replaced */
		sys(SYS_sched_yield, 0, 0, 0);
		seen = 0;
	}
	return true;
}

void bind_release(void)
{
	__atomic_store_n(&holder, 0, __ATOMIC_RELEASE);
}

/* ---- reading the list ------------------------------------------------------------------ */

/*
 * A child that is forked while another thread reads the list never gets the list's lock. So a fork waits until none of us reads, and
 * who wants to read waits until it is over. Neither does so for ever: handlers of the program's may run meanwhile, and wait for the
 * other.
 */
enum { PATIENCE = 40000 };              /* naps: some seconds */

static u32 readers, forks;              /* under way */

static u32 count(const u32 *what) { return __atomic_load_n(what, __ATOMIC_SEQ_CST); }
static void add(u32 *what, u32 n) { __atomic_add_fetch(what, n, __ATOMIC_SEQ_CST); }
static void subtract(u32 *what, u32 n) { __atomic_sub_fetch(what, n, __ATOMIC_SEQ_CST); }

static void nap(void)
{
	struct timespec t = { .tv_nsec = 20000 };

	sys(SYS_nanosleep, &t, 0, 0);
}

static void before_fork(void)
{
	add(&forks, 1);
	for (u32 i = 0; i < PATIENCE && count(&readers) > tls.reading; i++)
		nap();
}

static void after_fork(void) { subtract(&forks, 1); }

static void in_child(void)
{
	readers = tls.reading;
	forks = 0;
}

static void begin_reading(void)
{
	add(&readers, 1);
	for (u32 i = 0; i < PATIENCE && count(&forks) && !tls.reading; i++) {
		subtract(&readers, 1);
		nap();
		add(&readers, 1);
	}
	tls.reading++;
}

void bind_read_list(int (*f)(struct dl_phdr_info *, size_t, void *), void *argument)
{
	begin_reading();
	dl_iterate_phdr(f, argument);
	tls.reading--;
	subtract(&readers, 1);
}

void bind_mind_forks(void) { pthread_atfork(before_fork, after_fork, in_child); }
