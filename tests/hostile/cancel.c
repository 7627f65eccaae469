// cc: -pthread
/* pthread_cancel, deferred and asynchronous-while-not-allocating, of threads that allocate all the time */
#include "hostile.h"

static int cleaned;

static void cleanup(void *block)
{
	free(block);
	__atomic_add_fetch(&cleaned, 1, __ATOMIC_RELAXED);
}

static void *work(void *unused)
{
	void *block = malloc(1000);

	pthread_cleanup_push(cleanup, block);
	for (;;) {
		churn(5000);                    /* no cancellation point may appear in here */
		pthread_testcancel();
	}
	pthread_cleanup_pop(1);
	return unused;
}

int main(void)
{
	int cancelled = 0;

	for (int round = 0; round < 25; round++) {
		pthread_t id[4];
		void *result;

		for (int i = 0; i < 4; i++)
			pthread_create(&id[i], NULL, work, NULL);
		usleep(300);
		for (int i = 0; i < 4; i++)
			pthread_cancel(id[i]);
		for (int i = 0; i < 4; i++) {
			pthread_join(id[i], &result);
			cancelled += result == PTHREAD_CANCELED;
		}
	}
	printf("%d cancelled, %s\n", cancelled, cleaned <= cancelled ? "clean" : "dirty");
	return 0;
}
