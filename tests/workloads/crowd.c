// cc: -pthread
/*
 * crowd.c - many threads that exist at once make their first allocation at the same moment: each must find a place in
 * mlprof's shared memory, of which more has to be made meanwhile. "dry" creates the threads and does nothing else.
 */
#include "expect.h"
#include <pthread.h>

enum { THREADS = 500, TIMES = 20, SIZE = 1000 };

static pthread_barrier_t barrier;
static int times = TIMES;

static void *work(void *unused)
{
	pthread_barrier_wait(&barrier);
	for (int i = 0; i < times; i++)
		free(used(malloc(SIZE)));
	pthread_barrier_wait(&barrier);         /* nobody ends, and leaves its place to another, before all have begun */
	return unused;
}

int main(int argc, char **argv)
{
	static pthread_t id[THREADS];
	pthread_attr_t small;

	(void)argv;
	times = argc > 1 ? 0 : TIMES;
	pthread_barrier_init(&barrier, NULL, THREADS);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);    /* all fit libc's cache of stacks: it frees none */
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&id[i], &small, work, NULL))
			return 2;
	for (int i = 0; i < THREADS; i++)
		pthread_join(id[i], NULL);
	expect("totals.allocs", (long long)THREADS * times);
	expect("totals.frees", (long long)THREADS * times);
	expect("totals.allocated_bytes", (long long)THREADS * times * SIZE);
	expect("losses.records", 0);
	return 0;
}
