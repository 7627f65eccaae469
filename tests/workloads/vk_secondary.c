/*
 * vk_secondary.c - secondary command buffers in odd places:
 *
 *   vk_secondary nested      executed in secondary ones (VK_EXT_nested_command_buffer; lavapipe does it unasked)
 *   vk_secondary shared      one of them in two primary ones, on two queues at once (vk_shim.c, SHIM=queues)
 */
#define BY_GETTER
#include "vk_client.h"

enum { ROUNDS = 3 };

static struct client c;

static void dispatch(VkCommandBuffer b, uint32_t groups)
{
	client_bind(&c, b, 3, 1);
	vkCmdDispatch(b, groups, 1, 1);
	client_barrier(b);
}

static VkCommandBuffer secondary(uint32_t groups, VkCommandBuffer inside)
{
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_SECONDARY);

	client_begin(b, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, 1);
	dispatch(b, groups);
	if (inside)
		vkCmdExecuteCommands(b, 1, &inside);
	dispatch(b, groups + 1);
	GOOD(vkEndCommandBuffer(b));
	return b;
}

static VkCommandBuffer primary(uint32_t groups, VkCommandBuffer inside)
{
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);

	client_begin(b, 0, 0);
	dispatch(b, groups);
	vkCmdExecuteCommands(b, 1, &inside);
	GOOD(vkEndCommandBuffer(b));
	return b;
}

/* Three kernels in each submit are seen, and two more are in it. */
static void nested(void)
{
	VkCommandBuffer b = primary(1, secondary(2, secondary(4, VK_NULL_HANDLE)));

	for (int i = 0; i < ROUNDS; i++) {
		client_submit(&c, b, VK_NULL_HANDLE);
		GOOD(vkQueueWaitIdle(c.queue));
	}
}

/* The first waits until both were submitted. */
static void shared(void)
{
	VkSemaphoreTypeCreateInfo type = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE };
	VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type };
	VkCommandBuffer inside = secondary(2, VK_NULL_HANDLE), b[2] = { primary(1, inside), primary(1, inside) };
	VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
	uint64_t one = 1;
	VkTimelineSemaphoreSubmitInfo value = { .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, .waitSemaphoreValueCount = 1, .pWaitSemaphoreValues = &one };
	VkSemaphoreSignalInfo signal = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .value = 1 };
	VkSubmitInfo submit = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = &value, .waitSemaphoreCount = 1, .pWaitDstStageMask = &all, .commandBufferCount = 1,
		.pCommandBuffers = &b[0],
	};
	VkSemaphore s;
	VkQueue other;

	vkGetDeviceQueue(c.device, 0, 1, &other);
	GOOD(vkCreateSemaphore(c.device, &info, NULL, &s));
	submit.pWaitSemaphores = &s;
	signal.semaphore = s;
	GOOD(vkQueueSubmit(c.queue, 1, &submit, VK_NULL_HANDLE));
	submit = (VkSubmitInfo){ .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &b[1] };
	GOOD(vkQueueSubmit(other, 1, &submit, VK_NULL_HANDLE));
	GOOD(((PFN_vkSignalSemaphore)vkGetDeviceProcAddr(c.device, "vkSignalSemaphore"))(c.device, &signal));
	GOOD(vkDeviceWaitIdle(c.device));
	vkDestroySemaphore(c.device, s, NULL);
}

int main(int argc, char **argv)
{
	static const VkPhysicalDeviceVulkan12Features features = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .timelineSemaphore = 1 };

	c.version = VK_API_VERSION_1_2;
	client_instance(&c, NULL, 0);
	client_device(&c, &features);
	client_data(&c, 4096);
	client_layout(&c);
	c.module = client_module(&c, vk_scale, sizeof vk_scale);
	c.pipeline = client_pipeline(&c, c.module, "main", 64, 200);
	if (argc > 1 && !strcmp(argv[1], "shared"))
		shared();
	else
		nested();
	say("result %llu\n", (unsigned long long)client_sum(&c));
	client_end(&c);
	return 0;
}
