// cc: -pthread
/*
 * spans.c - large blocks with known lives, in order: each must be a span of its own.
 */
#include "expect.h"
#include <pthread.h>
#include <sys/mman.h>

__attribute__((noinline)) static void *embed(size_t size) { return used(malloc(size)); }
__attribute__((noinline)) static void *attend(size_t size) { return used(calloc(1, size)); }
__attribute__((noinline)) static void *cache(size_t size)
{
	return used(mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

static void *worker(void *unused)
{
	void *p;

	pthread_setname_np(pthread_self(), "decoder");
	p = attend(3000000);
	usleep(50000);
	free(p);
	return unused;
}

int main(void)
{
	void *p = embed(2000000), *small = embed(1000), *map;
	pthread_t id;

	usleep(30000);
	pthread_create(&id, NULL, worker, NULL);
	map = cache(4 << 20);
	pthread_join(id, NULL);
	free(p);
	p = embed(5000000);                     /* never freed */
	munmap(map, 4 << 20);
	free(small);
	say("done\n");
	return 0;
}
