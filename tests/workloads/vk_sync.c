/*
 * vk_sync.c - timeline semaphores, and the newer commands: vk_sync VERSION, 11: by extensions, 12, 13: also vkQueueSubmit2
 *
 * Each submit waits for the one before it, and the program for each by its value alone. The command buffer is freed at once:
 * nobody but the program knows by then that it is over. In the end another thread signals it, too.
 */
#include "vk_client.h"
#include <pthread.h>

enum { ROUNDS = 24, GROUPS = 5 };

static struct client c;
static int khr;                         /* by the names of extensions */
static VkSemaphore line, binary;

/* With or without KHR: what a device of this version has. */
static PFN_vkWaitSemaphores wait_semaphores;
static PFN_vkGetSemaphoreCounterValue counter_value;
static PFN_vkSignalSemaphore signal_semaphore;
static PFN_vkQueueSubmit2 submit2;
static PFN_vkCmdCopyBuffer2 copy_buffer2;
static PFN_vkCmdDispatchBase dispatch_base;

static PFN_vkVoidFunction find(const char *name)
{
	char text[64];

	snprintf(text, sizeof text, "%s%s", name, khr ? "KHR" : "");
	return vkGetDeviceProcAddr(c.device, text);
}

static void find_all(void)
{
	wait_semaphores = (PFN_vkWaitSemaphores)find("vkWaitSemaphores");
	counter_value = (PFN_vkGetSemaphoreCounterValue)find("vkGetSemaphoreCounterValue");
	signal_semaphore = (PFN_vkSignalSemaphore)find("vkSignalSemaphore");
	submit2 = (PFN_vkQueueSubmit2)find("vkQueueSubmit2");
	copy_buffer2 = (PFN_vkCmdCopyBuffer2)find("vkCmdCopyBuffer2");
	dispatch_base = (PFN_vkCmdDispatchBase)find("vkCmdDispatchBase");
}

static VkSemaphore semaphore(VkSemaphoreType type)
{
	VkSemaphoreTypeCreateInfo what = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .semaphoreType = type };
	VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = type ? &what : NULL };
	VkSemaphore made;

	GOOD(vkCreateSemaphore(c.device, &info, NULL, &made));
	return made;
}

static VkCommandBuffer commands(void)
{
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	VkBufferCopy2 part = { VK_STRUCTURE_TYPE_BUFFER_COPY_2, NULL, 0, 8192, 512 };
	VkCopyBufferInfo2 all = { VK_STRUCTURE_TYPE_COPY_BUFFER_INFO_2, NULL, c.buffer, c.buffer, 1, &part };

	client_begin(b, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, 0);
	client_bind(&c, b, 3, 1);
	if (dispatch_base)
		dispatch_base(b, 0, 0, 0, GROUPS, 1, 1);
	else
		vkCmdDispatch(b, GROUPS, 1, 1);
	client_barrier(b);
	if (copy_buffer2)
		copy_buffer2(b, &all);
	client_barrier(b);
	GOOD(vkEndCommandBuffer(b));
	return b;
}

/* Its values first in the chain, behind something else, or with a semaphore that has none. */
static void submit_one(VkCommandBuffer b, uint64_t n)
{
	VkPipelineStageFlags all[2] = { VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT };
	VkSemaphore both[2] = { line, binary };
	uint64_t waits[2] = { n, 0 }, signals[2] = { n + 1, 0 };
	uint32_t count = n % 2 ? 2 : 1;
	VkTimelineSemaphoreSubmitInfo values = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, .waitSemaphoreValueCount = n % 2 ? 1 : 2, .pWaitSemaphoreValues = waits,
		.signalSemaphoreValueCount = count, .pSignalSemaphoreValues = signals,
	};
	VkProtectedSubmitInfo other = { .sType = VK_STRUCTURE_TYPE_PROTECTED_SUBMIT_INFO, .pNext = &values };
	VkSubmitInfo info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = n % 3 ? (void *)&values : &other, .commandBufferCount = 1, .pCommandBuffers = &b,
		.waitSemaphoreCount = n % 2 || !n ? 1 : 2, .pWaitSemaphores = both, .pWaitDstStageMask = all,
		.signalSemaphoreCount = count, .pSignalSemaphores = both,
	};

	values.waitSemaphoreValueCount = info.waitSemaphoreCount;
	GOOD(vkQueueSubmit(c.queue, 1, &info, VK_NULL_HANDLE));
}

static void submit_two(VkCommandBuffer b, uint64_t n)
{
	VkPipelineStageFlags2 all = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT;
	VkSemaphoreSubmitInfo waits[2] = { { VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO, NULL, line, n, all, 0 },
					   { VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO, NULL, binary, 0, all, 0 } };
	VkSemaphoreSubmitInfo signals[2] = { { VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO, NULL, line, n + 1, all, 0 },
					     { VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO, NULL, binary, 0, all, 0 } };
	VkCommandBufferSubmitInfo one = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = b };
	VkSubmitInfo2 info = {
		.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2, .commandBufferInfoCount = 1, .pCommandBufferInfos = &one,
		.waitSemaphoreInfoCount = n % 2 || !n ? 1 : 2, .pWaitSemaphoreInfos = waits,
		.signalSemaphoreInfoCount = n % 2 ? 2 : 1, .pSignalSemaphoreInfos = signals,
	};

	GOOD(submit2(c.queue, 1, &info, VK_NULL_HANDLE));
}

static void wait_for(uint64_t value)
{
	VkSemaphoreWaitInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, .semaphoreCount = 1, .pSemaphores = &line, .pValues = &value };
	uint64_t now = 0;

	GOOD(wait_semaphores(c.device, &info, 10000000000ull));
	GOOD(counter_value(c.device, line, &now));
	if (now != value)
		say("the semaphore is at %llu, not at %llu\n", (unsigned long long)now, (unsigned long long)value);
}

static void *signal_it(void *nothing)
{
	VkSemaphoreSignalInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = line, .value = ROUNDS + 1 };

	GOOD(signal_semaphore(c.device, &info));
	return nothing;
}

int main(int argc, char **argv)
{
	static VkPhysicalDeviceTimelineSemaphoreFeatures timeline = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, .timelineSemaphore = VK_TRUE,
	};
	static VkPhysicalDeviceSynchronization2Features newer = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES, .pNext = &timeline, .synchronization2 = VK_TRUE,
	};
	int version = argc > 1 ? atoi(argv[1]) : 12;
	pthread_t thread;

	khr = version == 11;
	c.version = VK_MAKE_API_VERSION(0, version / 10, version % 10, 0);
	if (khr) {
		c.extension[0] = VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME;
		c.extension[1] = VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME;
		c.extension[2] = VK_KHR_COPY_COMMANDS_2_EXTENSION_NAME;
		c.extension[3] = VK_KHR_DEVICE_GROUP_EXTENSION_NAME;
	}
	client_instance(&c, NULL, 0);
	client_device(&c, version == 12 ? (void *)&timeline : &newer);
	find_all();
	client_data(&c, 4096);
	client_layout(&c);
	c.module = client_module(&c, vk_scale, sizeof vk_scale);
	c.pipeline = client_pipeline(&c, c.module, "main", 64, 20);
	line = semaphore(VK_SEMAPHORE_TYPE_TIMELINE);
	binary = semaphore(VK_SEMAPHORE_TYPE_BINARY);
	for (uint64_t n = 0; n < ROUNDS; n++) {
		VkCommandBuffer b = commands();

		if (version != 12 && n >= ROUNDS / 2)
			submit_two(b, n);
		else
			submit_one(b, n);
		wait_for(n + 1);
		vkFreeCommandBuffers(c.device, c.pool, 1, &b);
	}
	say("result %llu\n", (unsigned long long)client_sum(&c));
	say("work kernel %d 0 %d 64\n", ROUNDS, GROUPS);
	if (copy_buffer2)
		say("work vkCmdCopyBuffer %d 512 0 0\n", ROUNDS);
	GOOD(pthread_create(&thread, NULL, signal_it, NULL));
	GOOD(pthread_join(thread, NULL));
	GOOD(vkDeviceWaitIdle(c.device));
	vkDestroySemaphore(c.device, line, NULL);
	vkDestroySemaphore(c.device, binary, NULL);
	client_end(&c);
	return 0;
}
