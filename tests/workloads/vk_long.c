/* vk_long.c - vk_long SUBMITS DISPATCHES: so many small dispatches in each, recorded anew; says how much memory that took at most (KiB) */
#include "high_water.h"
#include "vk_client.h"

static struct client c;

int main(int argc, char **argv)
{
	long submits = argc > 2 ? atol(argv[1]) : 100, dispatches = argc > 2 ? atol(argv[2]) : 10;
	VkCommandBuffer b;

	c.version = VK_API_VERSION_1_2;
	client_start(&c, 64, 1);
	b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	for (long i = 0; i < submits; i++) {
		client_begin(b, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, 0);
		client_bind(&c, b, 3, 1);
		for (long k = 0; k < dispatches; k++)
			vkCmdDispatch(b, 1, 1, 1);
		GOOD(vkEndCommandBuffer(b));
		client_submit(&c, b, VK_NULL_HANDLE);
		GOOD(vkQueueWaitIdle(c.queue));
	}
	client_end(&c);
	say("high %ld\n", high_water());
	return 0;
}
