/*
 * vk_faults.c - ten submits, one after the other, whatever they say, and other calls that may fail; for drivers that do
 * odd things (vk_shim.c).
 */
#define BY_GETTER
#include "vk_client.h"

static struct client c = { .version = VK_API_VERSION_1_2 };

static void another_allocation(void)
{
	VkMemoryAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = 1 << 20 };
	VkDeviceMemory memory = VK_NULL_HANDLE;

	say("memory %d\n", vkAllocateMemory(c.device, &info, NULL, &memory));
	vkFreeMemory(c.device, memory, NULL);
}

int main(void)
{
	VkSubmitInfo info = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1 };
	VkFenceCreateInfo fence_info = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	VkCommandBuffer b;
	VkFence fence;

	client_start(&c, 4096, 50);
	another_allocation();
	b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	client_begin(b, 0, 0);
	client_bind(&c, b, 3, 1);
	vkCmdDispatch(b, 64, 1, 1);
	client_barrier(b);
	vkCmdFillBuffer(b, c.buffer, 0, 256, 5);
	GOOD(vkEndCommandBuffer(b));
	info.pCommandBuffers = &b;
	GOOD(vkCreateFence(c.device, &fence_info, NULL, &fence));
	for (int i = 0; i < 10; i++) {
		VkResult r = vkQueueSubmit(c.queue, 1, &info, fence);

		say("submit %d\n", r);
		if (i % 2)
			say("wait %d\n", vkQueueWaitIdle(c.queue));
		else
			say("fence %d\n", vkWaitForFences(c.device, 1, &fence, VK_TRUE, r ? 0 : 10000000000ull));
		say("status %d\n", vkGetFenceStatus(c.device, fence));
		vkResetFences(c.device, 1, &fence);
	}
	another_allocation();
	say("idle %d\n", vkDeviceWaitIdle(c.device));
	say("result %llu\n", (unsigned long long)client_sum(&c));
	vkDestroyFence(c.device, fence, NULL);
	client_end(&c);
	return 0;
}
