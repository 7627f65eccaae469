/*
 * vk_dispatch.c - what Vulkan calls cost the host, and what a loop of dispatches takes.
 *
 *   vk_dispatch record     ns per vkCmdDispatch
 *   vk_dispatch submit     ns per vkQueueSubmit, while the device is at work
 *   vk_dispatch wake       ns per vkQueueSubmit to a device that sleeps, which takes longer than the call itself
 *   vk_dispatch long       ns per round of a loop of dispatches that take about a millisecond each
 *   vk_dispatch several    ns per dispatch in such a loop with 20 to a submit
 *   vk_dispatch tiny       ns per submit and wait of one small dispatch
 */
#include "../workloads/vk_client.h"
#include <stdbool.h>
#include <time.h>

enum { BATCHES = 40, SUBMITS = 16 };

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

	client_begin(b, 0, 0);
	client_bind(&c, b, 3, 1);
	start = now();
	for (int i = 0; i < dispatches; i++)
		vkCmdDispatch(b, 1, 1, 1);
	start = (now() - start) / dispatches;
	GOOD(vkEndCommandBuffer(b));
	return start;
}

/* The first command buffer keeps the device busy. */
static double submits(const VkCommandBuffer *list)
{
	double start;

	client_submit(&c, list[0], VK_NULL_HANDLE);
	start = now();
	for (int i = 1; i <= SUBMITS; i++)
		client_submit(&c, list[i], VK_NULL_HANDLE);
	start = (now() - start) / SUBMITS;
	GOOD(vkQueueWaitIdle(c.queue));
	return start;
}

static bool is_one_of(const char *what, const char *a, const char *b, const char *d)
{
	return !strcmp(what, a) || !strcmp(what, b) || !strcmp(what, d);
}

static int dispatches_of(const char *what)
{
	return !strcmp(what, "record") ? 200 : !strcmp(what, "several") ? 20 : 1;
}

static double batch(const VkCommandBuffer *list, const char *what)
{
	double ns, start, end;

	if (!strcmp(what, "submit"))
		return submits(list);
	ns = record(list[0], dispatches_of(what));
	start = now();
	client_submit(&c, list[0], VK_NULL_HANDLE);
	end = now();
	GOOD(vkQueueWaitIdle(c.queue));
	if (!strcmp(what, "record"))
		return ns;
	return ((!strcmp(what, "wake") ? end : now()) - start) / dispatches_of(what);
}

/* So many rounds take a millisecond or a little more (lavapipe leaves every loop after 65535). Returns the short one's pipeline, which command buffers still name. */
static VkPipeline work_long(void)
{
	VkPipeline short_one = c.pipeline;

	c.pipeline = client_pipeline(&c, c.module, "main", 64, 27000);
	return short_one;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "record";
	VkCommandBuffer list[SUBMITS + 1];
	VkPipeline short_one = VK_NULL_HANDLE;
	static double ns[BATCHES];

	c.version = VK_API_VERSION_1_2;
	client_start(&c, 64, 1);
	for (int i = SUBMITS; i >= 0; i--) {
		list[i] = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
		if (i == 0 && is_one_of(what, "long", "several", "submit"))
			short_one = work_long();
		record(list[i], 1);
	}
	batch(list, what);
	for (int i = 0; i < BATCHES; i++)
		ns[i] = batch(list, what);
	qsort(ns, BATCHES, sizeof *ns, by_value);
	say("ns %.1f\n", ns[BATCHES / 4]);
	vkDestroyPipeline(c.device, short_one, NULL);
	client_end(&c);
	return 0;
}
