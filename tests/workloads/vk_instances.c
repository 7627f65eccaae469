/* vk_instances.c - instances of every version, each with a device of the same card, on several threads; some stay until the end. */
#include "vk_client.h"
#include <pthread.h>

static struct client client[8];

static void *run(void *number)
{
	static const uint32_t versions[] = { VK_API_VERSION_1_0, VK_API_VERSION_1_1, VK_API_VERSION_1_2, VK_API_VERSION_1_3 };
	struct client *c = &client[(uintptr_t)number];

	c->version = versions[(uintptr_t)number % 4];
	client_start(c, 4096, 1);
	client_dispatch(c, 3);
	return number;
}

int main(void)
{
	pthread_t thread[4];

	for (uintptr_t i = 0; i < 4; i++)
		run((void *)i);
	for (uintptr_t i = 0; i < 4; i++) {
		client_end(&client[i]);
		pthread_create(&thread[i], NULL, run, (void *)(i + 4));
	}
	for (int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	say("work kernel 8 0 3 64\n");
	for (int i = 4; i < 8; i++)
		client_end(&client[i]);
	return 0;
}
