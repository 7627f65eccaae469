/* vk_ends.c - submits work that takes a while, and ends: vk_ends exit|_exit|kill|fork|destroy|return */
#include "vk_client.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

static struct client c;

/* A child that makes an instance of its own, while the parent's queue is at work. */
static void in_child(void)
{
	struct client d = { .version = VK_API_VERSION_1_1 };
	int status;

	if (fork() == 0) {
		client_instance(&d, NULL, 0);
		vkDestroyInstance(d.instance, NULL);
		_exit(7);
	}
	wait(&status);
	GOOD(vkQueueWaitIdle(c.queue));
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 8);
}

static void *destroy(void *unused)
{
	usleep(320000);
	vkDestroyDevice(c.device, NULL);
	return unused;
}

/* Its work has been done when it exits, and 20 ms later its device goes. */
static void destroyed_while_exiting(void)
{
	pthread_t t;

	pthread_create(&t, NULL, destroy, NULL);
	usleep(300000);
	exit(6);
}

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "return";
	VkCommandBuffer b;

	c.version = VK_API_VERSION_1_2;
	client_start(&c, 65536, 3000);
	b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	client_begin(b, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, 0);
	client_bind(&c, b, 3, 1);
	vkCmdDispatch(b, 1024, 1, 1);
	GOOD(vkEndCommandBuffer(b));
	for (int i = 0; i < 3; i++)
		client_submit(&c, b, VK_NULL_HANDLE);
	say("submitted 3\n");
	if (!strcmp(way, "exit"))
		exit(4);
	if (!strcmp(way, "_exit"))
		_exit(3);
	if (!strcmp(way, "kill"))
		raise(SIGKILL);
	if (!strcmp(way, "fork"))
		in_child();
	if (!strcmp(way, "destroy"))
		destroyed_while_exiting();
	GOOD(vkDeviceWaitIdle(c.device));
	return 0;
}
