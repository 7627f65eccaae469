/* vk_again.c - the loader is closed and opened again: vk_again [leave], leave: with a device left in it at the end */
#define BY_GETTER
#include "vk_client.h"

static void run(struct client *c, int leave)
{
	client_start(c, 4096, 1);
	client_dispatch(c, 4);
	say("result %llu %d %d\n", (unsigned long long)client_sum(c), vkGetDeviceProcAddr(c->device, "vkGetCalibratedTimestampsEXT") != NULL,
	    vkGetDeviceProcAddr(c->device, "vkGetSemaphoreCounterValueKHR") != NULL);
	if (!leave)
		client_end(c);
	dlclose(client_library);
	client_library = NULL;
}

int main(int argc, char **argv)
{
	for (int i = 0; i < 3; i++) {
		struct client c = { .version = VK_API_VERSION_1_1 };

		run(&c, i == 2 && argc > 1);
		say("work kernel 1 0 4 64\n");
	}
	(void)argv;
	return 0;
}
