// cc: -pthread
/*
 * threads.c - N threads that hand blocks to each other, with a peak that is known whatever the interleaving.
 *
 *   grow     all allocate, nobody frees: the sum only rises, so it peaks at its end
 *   trade    free one of somebody else's, then allocate one that is not larger: the sum never passes the peak
 *   shrink   realloc of a neighbour's blocks, never larger
 *   top      if asked for, one thread alone adds a block and drops it: then this is the peak
 *   shed     all but LEFT blocks each are freed by a neighbour
 *
 * Sizes lie close together, so that an address that one thread gives up is another's at once: the order of
 * records is put to the test. "dry" creates the threads and does nothing else: what libc takes for them.
 */
#include "expect.h"
#include <pthread.h>
#include <stdatomic.h>

enum { MAX = 32, BLOCKS = 500, TRADES = 20000, LEFT = 7, SLOTS = 64 };

struct block {
	size_t size;
	char rest[];
};

static struct block *owned[MAX][BLOCKS];
static _Atomic(struct block *) market[SLOTS];
static struct books books[MAX];
static pthread_barrier_t barrier;
static int threads, dry;
static long long peak, top;

static struct block *make(struct books *b, size_t size)
{
	struct block *p = used(malloc(size));

	p->size = size;
	books_alloc(b, size);
	return p;
}

static void drop(struct books *b, struct block *p)
{
	books_free(b, p->size);
	free(p);
}

static void grow(int me, uint64_t *state)
{
	for (int i = 0; i < BLOCKS; i++)
		owned[me][i] = make(&books[me], 64 + dice(state) % 64);
}

/* What comes out of the market was put there by anybody; the new block is never larger than the one freed. */
static void trade(int me, uint64_t *state)
{
	for (int i = 0; i < TRADES; i++) {
		int mine = dice(state) % BLOCKS;
		struct block *p = atomic_exchange(&market[dice(state) % SLOTS], owned[me][mine]);

		owned[me][mine] = NULL;
		if (p) {
			size_t size = p->size > 48 && dice(state) % 4 == 0 ? p->size - 8 : p->size;

			drop(&books[me], p);
			owned[me][mine] = make(&books[me], size);
		}
	}
}

static void shrink(int me, uint64_t *state)
{
	int next = (me + 1) % threads;

	for (int i = 0; i < BLOCKS; i++) {
		struct block *p = owned[next][i];
		size_t size;

		if (!p)
			continue;
		size = 32 + dice(state) % (p->size - 31);
		books_realloc(&books[me], p->size, size);
		p = used(realloc(p, size));
		p->size = size;
		owned[next][i] = p;
	}
}

static void shed(int me)
{
	int next = (me + 1) % threads;
	int left = LEFT;

	for (int i = 0; i < BLOCKS; i++)
		if (owned[next][i] && left-- <= 0)
			drop(&books[me], owned[next][i]);
}

static struct books all(void)
{
	struct books sum = { .peak = peak };

	for (int i = 0; i < threads; i++) {
		sum.allocs += books[i].allocs;
		sum.frees += books[i].frees;
		sum.allocated += books[i].allocated;
		sum.live += books[i].live;
		sum.blocks += books[i].blocks;
	}
	return sum;
}

/* Everybody waits while the first one adds up. */
static void tally(int me, long long extra)
{
	pthread_barrier_wait(&barrier);
	if (me == 0 && all().live + extra > peak)
		peak = all().live + extra;
	pthread_barrier_wait(&barrier);
}

static void *work(void *arg)
{
	int me = (intptr_t)arg;
	uint64_t state = me * 977 + 5;

	pthread_barrier_wait(&barrier);         /* all threads exist before the first one allocates */
	if (dry)
		return NULL;
	grow(me, &state);
	tally(me, 0);
	trade(me, &state);
	tally(me, 0);
	shrink(me, &state);
	tally(me, top);
	if (me == 0 && top)
		drop(&books[0], make(&books[0], top));
	tally(me, 0);
	shed(me);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t id[MAX];
	pthread_attr_t small;
	struct books sum;

	threads = argc > 1 ? atoi(argv[1]) : 8;
	top = argc > 2 ? atoi(argv[2]) : 0;
	dry = argc > 3;
	pthread_barrier_init(&barrier, NULL, threads);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 256 << 10);   /* all fit libc's cache of stacks: it frees none */
	for (intptr_t i = 0; i < threads; i++)
		pthread_create(&id[i], &small, work, (void *)i);
	for (int i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
	sum = all();
	books_say(&sum);
	return 0;
}
