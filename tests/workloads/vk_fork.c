// cc: -pthread
/*
 * vk_fork.c - forks again and again while one thread submits and another makes and destroys buffers; the children go on
 * with what they inherited, with things of their own, become another program, or just end. None may hang.
 */
#include "vk_client.h"
#include <pthread.h>
#include <sys/wait.h>

enum { FORKS = 300 };

static struct client c, mine;
static volatile int stop;
static long submits;

static void *submit(void *unused)
{
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);

	for (; !stop; submits++) {
		client_begin(b, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, 0);
		client_bind(&c, b, 3, 1);
		for (int i = 0; i < 10; i++)
			vkCmdDispatch(b, 1, 1, 1);
		GOOD(vkEndCommandBuffer(b));
		client_submit(&c, b, VK_NULL_HANDLE);
		GOOD(vkQueueWaitIdle(c.queue));
	}
	return unused;
}

static void *make(void *unused)
{
	while (!stop)
		for (int i = 0; i < 100; i++)
			vkDestroyBuffer(c.device, client_buffer(&c, 4096), NULL);
	return unused;
}

/* Without the driver's own threads nothing can be submitted, but much can be made. */
static void go_on(void)
{
	VkCommandBuffer b = client_commands(&mine, VK_COMMAND_BUFFER_LEVEL_PRIMARY);

	for (int i = 0; i < 50; i++)
		vkDestroyBuffer(c.device, client_buffer(&c, 4096), NULL);
	client_begin(b, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, 0);
	client_bind(&c, b, 3, 1);
	for (int i = 0; i < 100; i++)
		vkCmdDispatch(b, 1, 1, 1);
	GOOD(vkEndCommandBuffer(b));
	vkFreeCommandBuffers(c.device, mine.pool, 1, &b);
}

static void begin_anew(void)
{
	struct client own = { .version = VK_API_VERSION_1_2 };

	client_instance(&own, NULL, 0);
	vkDestroyInstance(own.instance, NULL);
}

static void in_child(int way)
{
	static char *const words[] = { "true", NULL };

	alarm(20);
	if (way == 1)
		execv("/bin/true", words);
	if (way == 2 || way == 3)
		go_on();
	if (way == 3)
		begin_anew();
	_exit(0);
}

int main(void)
{
	VkCommandPoolCreateInfo info = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO };
	pthread_t thread[2];
	int bad = 0, status;

	c.version = VK_API_VERSION_1_2;
	client_start(&c, 64, 1);
	mine = c;
	GOOD(vkCreateCommandPool(c.device, &info, NULL, &mine.pool));
	pthread_create(&thread[0], NULL, submit, NULL);
	pthread_create(&thread[1], NULL, make, NULL);
	for (int i = 0; i < FORKS; i++) {
		pid_t child = fork();

		if (child == 0)
			in_child(i % 20 == 3 ? 3 : i % 3);
		if (waitpid(child, &status, 0) != child || status)
			bad++;
	}
	stop = 1;
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	vkDestroyCommandPool(c.device, mine.pool, NULL);
	client_end(&c);
	say("children %d, bad %d\n", FORKS, bad);
	say("time %ld\n", submits * 10);
	return 0;
}
