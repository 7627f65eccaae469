/*
 * vk_dispatch.c - what Vulkan calls cost the host, and what a loop of dispatches takes.
 *
 *   vk_dispatch record     ns per vkCmdDispatch
 *   vk_dispatch submit     ns per vkQueueSubmit, of the call alone
 *   vk_dispatch long       ns per round of a loop of dispatches that take about a millisecond each
 *   vk_dispatch tiny       ns per submit and wait of one small dispatch
 */
#include "../workloads/vk_client.h"
#include <time.h>

enum { BATCHES = 40 };

static struct client c;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
	return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

static double record(VkCommandBuffer b, int dispatches)
{
	double start;

	client_begin(b, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, 0);
	client_bind(&c, b, 3, 1);
	start = now();
	for (int i = 0; i < dispatches; i++)
		vkCmdDispatch(b, 1, 1, 1);
	start = (now() - start) / dispatches;
	GOOD(vkEndCommandBuffer(b));
	return start;
}

static double batch(VkCommandBuffer b, const char *what)
{
	double ns = record(b, !strcmp(what, "record") ? 200 : 1), start = now(), end;

	client_submit(&c, b, VK_NULL_HANDLE);
	end = now();
	GOOD(vkQueueWaitIdle(c.queue));
	if (!strcmp(what, "record"))
		return ns;
	return (!strcmp(what, "submit") ? end : now()) - start;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "record";
	static double ns[BATCHES];
	VkCommandBuffer b;

	c.version = VK_API_VERSION_1_2;
	client_start(&c, 64, !strcmp(what, "long") ? 300000 : 1);
	b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	batch(b, what);
	for (int i = 0; i < BATCHES; i++)
		ns[i] = batch(b, what);
	qsort(ns, BATCHES, sizeof *ns, by_value);
	say("ns %.1f\n", ns[BATCHES / 4]);
	client_end(&c);
	return 0;
}
