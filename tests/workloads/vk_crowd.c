/* cc: -pthread */
/*
 * vk_crowd.c - Vulkan devices, made while other threads are at work on the heap; says "did N": how many dispatches there were.
 *
 *   vk_crowd noise ROUNDS      one after the other, while one thread only allocates and frees
 *   vk_crowd made ROUNDS       ... while one does so until the device is there, and again when it goes
 *   vk_crowd threads ROUNDS    eight threads, each with its own devices
 *   vk_crowd alive ROUNDS      seven devices at once
 *   vk_crowd asked ROUNDS      one after the other, each asked for its queue by eight threads at once
 */
#include "vk_client.h"
#include <pthread.h>

enum { THREADS = 8, ALIVE = 7, EACH = 3 };
enum { NOISY, CALM, OVER };

static int phase, rounds, did;
static pthread_barrier_t ready;

static void *make_noise(void *unused)
{
	(void)unused;
	while (__atomic_load_n(&phase, __ATOMIC_RELAXED) != OVER)
		if (__atomic_load_n(&phase, __ATOMIC_RELAXED) == NOISY) {
			void *volatile block = malloc(24);

			free(block);
		}
	return NULL;
}

static void start(struct client *c)
{
	*c = (struct client){ .version = VK_API_VERSION_1_2 };
	client_start(c, 64, 1);
}

static void use(struct client *c)
{
	for (int i = 0; i < EACH; i++)
		client_dispatch(c, 1);
	__atomic_add_fetch(&did, EACH, __ATOMIC_RELAXED);
}

/* `between`: what the other thread does while the device is used. */
static void one_after_the_other(int between)
{
	pthread_t other;

	pthread_create(&other, NULL, make_noise, NULL);
	for (int i = 0; i < rounds; i++) {
		struct client c;

		start(&c);
		__atomic_store_n(&phase, between, __ATOMIC_RELAXED);
		use(&c);
		__atomic_store_n(&phase, NOISY, __ATOMIC_RELAXED);
		client_end(&c);
	}
	__atomic_store_n(&phase, OVER, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
}

static void *own_devices(void *unused)
{
	(void)unused;
	for (int i = 0; i < rounds; i++) {
		struct client c;

		start(&c);
		use(&c);
		client_end(&c);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t thread[THREADS];

	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, own_devices, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
}

static void alive(void)
{
	static struct client c[ALIVE];

	for (int i = 0; i < ALIVE; i++)
		start(&c[i]);
	for (int k = 0; k < rounds; k++)
		for (int i = 0; i < ALIVE; i++)
			use(&c[i]);
	for (int i = 0; i < ALIVE; i++)
		client_end(&c[i]);
}

static void *ask(void *start)
{
	struct client *c = start;

	pthread_barrier_wait(&ready);
	vkGetDeviceQueue(c->device, 0, 0, &c->queue);
	return NULL;
}

/* Only the device: client_start asks for the queue by itself. */
static void asked(void)
{
	static const float priority = 1;
	static const VkDeviceQueueCreateInfo queue = { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority };
	static const VkDeviceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue };
	struct client asker[THREADS] = { { .version = VK_API_VERSION_1_2 } };
	pthread_t thread[THREADS];

	client_instance(asker, NULL, 0);
	pthread_barrier_init(&ready, NULL, THREADS);
	for (int k = 0; k < rounds; k++) {
		GOOD(vkCreateDevice(asker->physical, &info, NULL, &asker->device));
		for (int i = 0; i < THREADS; i++) {
			asker[i].device = asker->device;
			pthread_create(&thread[i], NULL, ask, &asker[i]);
		}
		for (int i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		vkDestroyDevice(asker->device, NULL);
	}
	vkDestroyInstance(asker->instance, NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	rounds = argc > 2 ? atoi(argv[2]) : 0;
	if (!strcmp(what, "noise") || !strcmp(what, "made"))
		one_after_the_other(*what == 'n' ? NOISY : CALM);
	else if (!strcmp(what, "threads"))
		threads();
	else if (!strcmp(what, "asked"))
		asked();
	else
		alive();
	say("did %d\n", did);
	return 0;
}
