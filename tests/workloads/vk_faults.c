/*
 * vk_faults.c - ten submits, one after the other, whatever they say; for drivers that do odd things (vk_shim.c).
 */
#define BY_GETTER
#include "vk_client.h"
#include "vk_scale.h"

int main(void)
{
	struct client c = { .version = VK_API_VERSION_1_2 };
	VkSubmitInfo info = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1 };
	VkCommandBuffer b;

	client_instance(&c, NULL, 0);
	client_device(&c, NULL);
	client_data(&c, 4096);
	client_layout(&c);
	c.module = client_module(&c, vk_scale, sizeof vk_scale);
	c.pipeline = client_pipeline(&c, c.module, "main", 64, 50);
	b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	client_begin(b, 0, 0);
	client_bind(&c, b, 3, 1);
	vkCmdDispatch(b, 64, 1, 1);
	client_barrier(b);
	vkCmdFillBuffer(b, c.buffer, 0, 256, 5);
	GOOD(vkEndCommandBuffer(b));
	info.pCommandBuffers = &b;
	for (int i = 0; i < 10; i++) {
		say("submit %d\n", vkQueueSubmit(c.queue, 1, &info, VK_NULL_HANDLE));
		say("wait %d\n", vkQueueWaitIdle(c.queue));
	}
	say("result %llu\n", (unsigned long long)client_sum(&c));
	client_end(&c);
	return 0;
}
