// cc: -pthread
/* RLIMIT_AS: allocations fail with ENOMEM where they should and work again afterwards */
#include "hostile.h"
#include <sys/resource.h>

static void *work(void *unused)
{
	churn(1000);
	return unused;
}

int main(void)
{
	struct rlimit limit = { 200 << 20, 200 << 20 };
	void *big, *block[64];
	int got = 0;
	pthread_t id;

	setrlimit(RLIMIT_AS, &limit);
	errno = 0;
	big = malloc((size_t)400 << 20);
	printf("400 MiB: %d %s\n", big != NULL, strerror(errno));
	while (got < 64 && (block[got] = malloc(16 << 20)))
		got++;
	printf("some but not all: %d, %s\n", got > 0 && got < 64, strerror(errno));
	while (got)
		free(block[--got]);
	if (!pthread_create(&id, NULL, work, NULL))
		pthread_join(id, NULL);
	printf("%u\n", churn(1000));
	return 0;
}
