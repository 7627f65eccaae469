/* vk_small.c - a thread with the smallest stack there may be records, submits and waits. */
#include "vk_client.h"
#include <limits.h>
#include <pthread.h>

enum { ROUNDS = 5 };

static struct client c;

static void *work(void *unused)
{
	for (int i = 0; i < ROUNDS; i++)
		client_dispatch(&c, 3);
	return unused;
}

int main(void)
{
	pthread_attr_t small;
	pthread_t thread;

	c.version = VK_API_VERSION_1_2;
	client_start(&c, 4096, 1);
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, PTHREAD_STACK_MIN);
	pthread_create(&thread, &small, work, NULL);
	pthread_join(thread, NULL);
	say("work kernel %d 0 3 64\n", ROUNDS);
	client_end(&c);
	return 0;
}
