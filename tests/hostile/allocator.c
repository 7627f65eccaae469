// cc: -pthread
/* for programs linked with an allocator of their own: still that allocator, still recorded */
#include "hostile.h"
#include <malloc.h>

static void *work(void *unused)
{
	churn(3000);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t id[4];
	void *p;

	for (int i = 0; i < 4; i++)
		pthread_create(&id[i], NULL, work, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(id[i], NULL);
	printf("%u, usable size of 1000: %zu\n", churn(1000), malloc_usable_size(p = malloc(1000)));
	free(p);
	p = aligned_alloc(4096, 8192);
	printf("aligned %d\n", (uintptr_t)p % 4096 == 0);
	free(p);
	return 0;
}
