/*
 * vk_churn.c - things come and go on some threads while others use what is near to them.
 *
 *   (nothing)   command buffers, while others record; more threads than cores, so that each is stopped anywhere
 *   memory      it is freed on one thread while another destroys the buffers in it
 */
#include "vk_client.h"
#include <pthread.h>
#include <string.h>

static struct client c;

/* ---- command buffers ---------------------------------------------------------------------------------- */

enum { COMING = 2, RECORDING = 8, AT_ONCE = 64, BINDS = 1000, SECONDS = 2 };

static int over;

static VkCommandPool new_pool(void)
{
	VkCommandPoolCreateInfo info = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO };
	VkCommandPool pool;

	GOOD(vkCreateCommandPool(c.device, &info, NULL, &pool));
	return pool;
}

static int is_over(void) { return __atomic_load_n(&over, __ATOMIC_RELAXED); }

static void *come_and_go(void *unused)
{
	VkCommandBufferAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = new_pool(), .commandBufferCount = AT_ONCE,
	};
	VkCommandBuffer list[AT_ONCE];

	while (!is_over()) {
		GOOD(vkAllocateCommandBuffers(c.device, &info, list));
		vkFreeCommandBuffers(c.device, info.commandPool, AT_ONCE, list);
	}
	vkDestroyCommandPool(c.device, info.commandPool, NULL);
	return unused;
}

static void *record(void *unused)
{
	struct client mine = c;
	VkCommandBuffer b;

	mine.pool = new_pool();
	b = client_commands(&mine, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	while (!is_over()) {
		client_begin(b, 0, 0);
		for (int i = 0; i < BINDS; i++)
			vkCmdBindPipeline(b, VK_PIPELINE_BIND_POINT_COMPUTE, c.pipeline);
		GOOD(vkEndCommandBuffer(b));
		GOOD(vkResetCommandPool(c.device, mine.pool, 0));
	}
	vkDestroyCommandPool(c.device, mine.pool, NULL);
	return unused;
}

static void commands_and_recording(void)
{
	pthread_t thread[COMING + RECORDING];

	for (int i = 0; i < COMING + RECORDING; i++)
		pthread_create(&thread[i], NULL, i < COMING ? come_and_go : record, NULL);
	sleep(SECONDS);
	__atomic_store_n(&over, 1, __ATOMIC_RELAXED);
	for (int i = 0; i < COMING + RECORDING; i++)
		pthread_join(thread[i], NULL);
}

/* ---- memory ------------------------------------------------------------------------------------------ */

enum { ROUNDS = 3000, BUFFERS = 16, EACH = 4096 };

static pthread_barrier_t together;
static VkDeviceMemory memory;
static VkBuffer bound[BUFFERS];

static void *free_it(void *unused)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&together);
		vkFreeMemory(c.device, memory, NULL);
		pthread_barrier_wait(&together);
	}
	return unused;
}

static void memory_and_buffers(void)
{
	pthread_t other;

	pthread_barrier_init(&together, NULL, 2);
	pthread_create(&other, NULL, free_it, NULL);
	for (int i = 0; i < ROUNDS; i++) {
		memory = client_memory(&c, BUFFERS * EACH, ~0u);
		for (int k = 0; k < BUFFERS; k++) {
			bound[k] = client_buffer(&c, EACH);
			GOOD(vkBindBufferMemory(c.device, bound[k], memory, (VkDeviceSize)k * EACH));
		}
		pthread_barrier_wait(&together);
		for (int k = BUFFERS; k--;)
			vkDestroyBuffer(c.device, bound[k], NULL);
		pthread_barrier_wait(&together);
	}
	pthread_join(other, NULL);
}

/* ---- either -------------------------------------------------------------------------------------------- */

int main(int argc, char **argv)
{
	c.version = VK_API_VERSION_1_2;
	client_start(&c, 4096, 1);
	if (argc > 1 && !strcmp(argv[1], "memory"))
		memory_and_buffers();
	else
		commands_and_recording();
	client_dispatch(&c, 3);
	client_end(&c);
	say("done\n");
	return 0;
}
