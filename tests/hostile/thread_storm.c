// cc: -pthread
/* five thousand threads that begin, allocate and end, some detached, some with destructors that allocate */
#include "hostile.h"

static pthread_key_t key;
static int ended;

static void late(void *block)
{
	free(block);
	free(used(malloc(77)));
	__atomic_add_fetch(&ended, 1, __ATOMIC_SEQ_CST);
}

static void *work(void *unused)
{
	pthread_setspecific(key, malloc(50));
	churn(20);
	return unused;
}

int main(void)
{
	pthread_key_create(&key, late);
	for (int round = 0; round < 500; round++) {
		pthread_t id[10];

		for (int i = 0; i < 10; i++)
			pthread_create(&id[i], NULL, work, NULL);
		for (int i = 0; i < 10; i++) {
			if (i % 3)
				pthread_join(id[i], NULL);
			else
				pthread_detach(id[i]);
		}
	}
	while (__atomic_load_n(&ended, __ATOMIC_SEQ_CST) < 5000)
		usleep(1000);
	printf("%d ended\n", ended);
	return 0;
}
