/* vk_again.c - the loader is closed and opened again: vk_again [leave], leave: with a device left in it at the end */
#define BY_GETTER
#include "vk_client.h"
#include "vk_scale.h"

static void run(struct client *c, int leave)
{
	VkCommandBuffer b;

	client_instance(c, NULL, 0);
	client_device(c, NULL);
	client_data(c, 4096);
	client_layout(c);
	c->module = client_module(c, vk_scale, sizeof vk_scale);
	c->pipeline = client_pipeline(c, c->module, "main", 64, 1);
	b = client_commands(c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	client_begin(b, 0, 0);
	client_bind(c, b, 3, 1);
	vkCmdDispatch(b, 4, 1, 1);
	GOOD(vkEndCommandBuffer(b));
	client_submit(c, b, VK_NULL_HANDLE);
	GOOD(vkDeviceWaitIdle(c->device));
	say("result %llu %d %d\n", (unsigned long long)client_sum(c), vkGetDeviceProcAddr(c->device, "vkGetCalibratedTimestampsEXT") != NULL,
	    vkGetDeviceProcAddr(c->device, "vkGetSemaphoreCounterValueKHR") != NULL);
	if (!leave)
		client_end(c);
	dlclose(client_library);
	dlclose(client_library);
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
