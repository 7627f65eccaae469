// cc: -pthread
/*
 * vk_queues.c - all queues of all families at work: one after the other, by a thread each, and one waiting for the other.
 *
 *   vk_queues [PAUSE]      with PAUSE, one command buffer on two queues instead, so many us apart
 *
 * Lines "queue NAME TIMED WORKS SUBMITS" say what each of them did and whether it has stamps, "time ..." when.
 */
#define BY_GETTER
#include "vk_client.h"
#include <pthread.h>
#include <time.h>

enum { FAMILIES = 8, QUEUES = 16, ROUNDS = 5, GROUPS = 64 };

static struct client c;
static VkQueueFamilyProperties family[FAMILIES];

static struct lane {
	VkQueue queue;
	uint32_t family, index;
	struct client mine;             /* c with a pool of its own */
	VkCommandBuffer b;
	VkFence fence;
	int submits;
} lane[QUEUES];
static int lanes;

static int computes(const struct lane *l) { return (family[l->family].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0; }

static const char *word(const struct lane *l)
{
	return family[l->family].queueFlags & VK_QUEUE_GRAPHICS_BIT ? "graphics" : computes(l) ? "compute" : "transfer";
}

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void make_device(void)
{
	static const float priority[QUEUES] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };
	VkDeviceQueueCreateInfo list[FAMILIES];
	VkDeviceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pQueueCreateInfos = list, .queueCreateInfoCount = FAMILIES };

	vkGetPhysicalDeviceQueueFamilyProperties(c.physical, &info.queueCreateInfoCount, family);
	for (uint32_t i = 0; i < info.queueCreateInfoCount; i++)
		list[i] = (VkDeviceQueueCreateInfo){ .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueFamilyIndex = i,
						     .queueCount = family[i].queueCount, .pQueuePriorities = priority };
	GOOD(vkCreateDevice(c.physical, &info, NULL, &c.device));
	functions_of_device(c.device);
	for (uint32_t i = 0; i < info.queueCreateInfoCount; i++)
		for (uint32_t k = 0; k < family[i].queueCount; k++) {
			lane[lanes] = (struct lane){ .family = i, .index = k };
			vkGetDeviceQueue(c.device, i, k, &lane[lanes++].queue);
		}
}

/* Two works: a dispatch and a fill, or a copy and a fill. */
static void prepare(struct lane *l)
{
	VkCommandPoolCreateInfo pool = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = l->family };
	VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	VkBufferCopy copy = { 0, 4096, 4096 };

	l->mine = c;
	GOOD(vkCreateFence(c.device, &fence, NULL, &l->fence));
	GOOD(vkCreateCommandPool(c.device, &pool, NULL, &l->mine.pool));
	l->b = client_commands(&l->mine, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	client_begin(l->b, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, 0);
	if (computes(l)) {
		client_bind(&c, l->b, 3, 1);
		vkCmdDispatch(l->b, GROUPS, 1, 1);
	} else {
		vkCmdCopyBuffer(l->b, c.buffer, c.buffer, 1, &copy);
	}
	client_barrier(l->b);
	vkCmdFillBuffer(l->b, c.buffer, 8192, 1024, 7);
	client_barrier(l->b);
	GOOD(vkEndCommandBuffer(l->b));
}

static void round_of(struct lane *l)
{
	VkSubmitInfo info = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &l->b };
	long long begin = now(), end;

	GOOD(vkQueueSubmit(l->queue, 1, &info, l->fence));
	GOOD(vkWaitForFences(c.device, 1, &l->fence, VK_TRUE, 10000000000ull));
	end = now();
	GOOD(vkResetFences(c.device, 1, &l->fence));
	say("time %u/%u %d %lld %lld\n", l->family, l->index, l->submits++, begin, end);
}

static void *thread(void *which)
{
	for (int i = 0; i < ROUNDS; i++)
		round_of(which);
	return NULL;
}

/* Each queue waits for the one before it. */
static void chain(void)
{
	VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO };
	VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
	VkSemaphore s[QUEUES];

	for (int i = 0; i < lanes; i++)
		GOOD(vkCreateSemaphore(c.device, &info, NULL, &s[i]));
	for (int i = 0; i < lanes; i++) {
		VkSubmitInfo submit = {
			.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &lane[i].b,
			.waitSemaphoreCount = i > 0, .pWaitSemaphores = &s[i ? i - 1 : 0], .pWaitDstStageMask = &all,
			.signalSemaphoreCount = 1, .pSignalSemaphores = &s[i],
		};

		GOOD(vkQueueSubmit(lane[i].queue, 1, &submit, VK_NULL_HANDLE));
		lane[i].submits++;
	}
	GOOD(vkDeviceWaitIdle(c.device));
	for (int i = 0; i < lanes; i++)
		vkDestroySemaphore(c.device, s[i], NULL);
}

/* One command buffer on two queues of its family, at once or with a pause between: its stamps have but one place. */
static void shared(int pause)
{
	for (int i = 0; i < 4; i++) {
		VkSubmitInfo info = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &lane[0].b };

		GOOD(vkQueueSubmit(lane[i % 2].queue, 1, &info, VK_NULL_HANDLE));
		lane[i % 2].submits++;
		usleep(pause);
	}
	GOOD(vkDeviceWaitIdle(c.device));
}

int main(int argc, char **argv)
{
	pthread_t id[QUEUES];

	c.version = VK_API_VERSION_1_2;
	client_instance(&c, NULL, 0);
	make_device();
	client_data(&c, 4096);
	client_layout(&c);
	c.module = client_module(&c, vk_scale, sizeof vk_scale);
	c.pipeline = client_pipeline(&c, c.module, "main", 64, 200);
	for (int i = 0; i < lanes; i++)
		prepare(&lane[i]);
	if (argc > 1) {
		shared(atoi(argv[1]));
	} else {
		for (int i = 0; i < lanes; i++)
			round_of(&lane[i]);
		for (int i = 0; i < lanes; i++)
			pthread_create(&id[i], NULL, thread, &lane[i]);
		for (int i = 0; i < lanes; i++)
			pthread_join(id[i], NULL);
		chain();
	}
	for (int i = 0; i < lanes; i++) {
		struct lane *l = &lane[i];

		say("queue %u/%u (%s) %d %d %d\n", l->family, l->index, word(l), computes(l) && family[l->family].timestampValidBits, l->submits * 2,
		    l->submits);
		vkDestroyFence(c.device, l->fence, NULL);
		vkDestroyCommandPool(c.device, l->mine.pool, NULL);
	}
	client_end(&c);
	return 0;
}
