// cc: -pthread
/*
 * handover.c - one thread allocates, another frees at once what it is given, as fast as both can.
 *
 * The two stamps of a block lie some tens of nanoseconds apart on two cores: a stamp that the processor takes
 * a little early, before the load that brought the address, puts the death before the birth. "dry" only makes
 * the thread.
 */
#include "expect.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { SIZE = 64 };

static _Atomic(void *) slot;
static int times = 300000;

/* Spins, but not for a whole time slice when the other thread has no core. */
static void wait_until(int full)
{
	for (int i = 0; (atomic_load_explicit(&slot, memory_order_acquire) != NULL) != full; i++)
		if (i > 2000)
			sched_yield();
}

static void *consumer(void *unused)
{
	for (int i = 0; i < times; i++) {
		void *p;

		wait_until(1);
		p = atomic_load_explicit(&slot, memory_order_acquire);
		atomic_store_explicit(&slot, NULL, memory_order_release);
		free(p);
	}
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t id;

	(void)argv;
	times = argc > 1 ? 0 : times;
	pthread_create(&id, NULL, consumer, NULL);
	for (int i = 0; i < times; i++) {
		void *p = used(malloc(SIZE));

		wait_until(0);
		atomic_store_explicit(&slot, p, memory_order_release);
	}
	pthread_join(id, NULL);
	expect("totals.allocs", times);
	expect("totals.frees", times);
	expect("totals.allocated_bytes", (long long)times * SIZE);
	expect("totals.live_at_exit_blocks", 0);
	return 0;
}
