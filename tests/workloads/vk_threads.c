/* vk_threads.c - threads that record at the same time, each in a pool of its own, and submit in turn; others poll. */
#include "vk_client.h"
#include <pthread.h>

enum { THREADS = 6, ROUNDS = 40 };

static struct client c;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *work(void *number)
{
	VkCommandPoolCreateInfo info = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO };
	VkFenceCreateInfo fence_info = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	uint32_t groups = 1 + (uint32_t)(uintptr_t)number;
	struct client mine = c;
	VkFence fence;

	GOOD(vkCreateCommandPool(c.device, &info, NULL, &mine.pool));
	GOOD(vkCreateFence(c.device, &fence_info, NULL, &fence));
	for (int i = 0; i < ROUNDS; i++) {
		VkCommandBuffer b = client_commands(&mine, VK_COMMAND_BUFFER_LEVEL_PRIMARY);

		client_begin(b, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, 0);
		client_bind(&mine, b, 1, 0);
		for (int k = 0; k < 3; k++)
			vkCmdDispatch(b, groups, 1, 1);
		GOOD(vkEndCommandBuffer(b));
		pthread_mutex_lock(&turn);
		client_submit(&mine, b, fence);
		pthread_mutex_unlock(&turn);
		if (groups % 2)
			while (vkGetFenceStatus(c.device, fence) == VK_NOT_READY)
				usleep(100);
		else
			GOOD(vkWaitForFences(c.device, 1, &fence, VK_TRUE, 10000000000ull));
		GOOD(vkResetFences(c.device, 1, &fence));
		vkFreeCommandBuffers(c.device, mine.pool, 1, &b);
	}
	vkDestroyFence(c.device, fence, NULL);
	vkDestroyCommandPool(c.device, mine.pool, NULL);
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];

	c.version = VK_API_VERSION_1_2;
	client_start(&c, 4096, 1);
	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(thread[i], NULL);
		say("work kernel %d 0 %d 64\n", ROUNDS * 3, i + 1);
	}
	say("result %llu\n", (unsigned long long)client_sum(&c));
	client_end(&c);
	return 0;
}
