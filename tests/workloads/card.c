/* cc: -shared -fPIC -pthread */
/*
 * card.c - see card.h. A thread is the card: it runs what was submitted in order, and notes when it really did.
 */
#include "card.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MANY = 1024, LIMIT = 1 << 30 };

struct item {
	const char *name;
	int queue, us, submitted, over;
	unsigned long start, end;
};

struct encoder {
	int queue;
	const char *name;
};

static struct item item[MANY];
static struct encoder encoders[16];
static struct { const void *function; const char *name; } names[16];
static int queues[16];
static int items, queue_count, encoder_count, name_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

static void run_one(struct item *i)
{
	pthread_mutex_unlock(&lock);
	i->start = now();
	usleep((unsigned)i->us);
	i->end = now();
	pthread_mutex_lock(&lock);
	i->over = 1;
	pthread_cond_broadcast(&changed);
}

static void *card(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		struct item *next = NULL;

		for (int i = 0; i < items && !next; i++)
			if (item[i].submitted && !item[i].over)
				next = &item[i];
		if (next)
			run_one(next);
		else
			pthread_cond_wait(&changed, &lock);
	}
	return unused;
}

int card_malloc(void **to, size_t bytes, const char *label)
{
	(void)label;
	*to = bytes < LIMIT ? malloc(bytes) : NULL;
	return *to ? 0 : 2;
}

void card_free(void *memory)
{
	free(memory);
}

static int is_queue(const void *object)
{
	return (const int *)object >= queues && (const int *)object < queues + 16;
}

void card_release(void *object)
{
	if (!is_queue(object))
		free(object);
}

void *card_queue(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_t thread;

	if (once == PTHREAD_ONCE_INIT) {
		once = !PTHREAD_ONCE_INIT;
		pthread_create(&thread, NULL, card, NULL);
		pthread_detach(thread);
	}
	return &queues[queue_count++];
}

void card_register(const void *function, const char *name)
{
	names[name_count].function = function;
	names[name_count++].name = name;
}

void *card_encoder(void *queue)
{
	encoders[encoder_count].queue = (int)((int *)queue - queues);
	return &encoders[encoder_count++];
}

void card_use(void *encoder, const void *function)
{
	for (int i = 0; i < name_count; i++)
		if (names[i].function == function)
			((struct encoder *)encoder)->name = names[i].name;
}

void card_launch(void *encoder, struct grid grid, int us)
{
	struct encoder *e = encoder;

	(void)grid;
	pthread_mutex_lock(&lock);
	item[items++] = (struct item) { .name = e->name, .queue = e->queue, .us = us };
	pthread_mutex_unlock(&lock);
}

void card_submit(void *queue)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < items; i++)
		if (&queues[item[i].queue] == queue)
			item[i].submitted = 1;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

static int is_idle(const void *queue)
{
	for (int i = 0; i < items; i++)
		if (&queues[item[i].queue] == queue && item[i].submitted && !item[i].over)
			return 0;
	return 1;
}

int card_wait(void *queue)
{
	pthread_mutex_lock(&lock);
	while (!is_idle(queue))
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return 0;
}

void card_copy(void *to, const void *from, size_t bytes, int kind)
{
	(void)kind;
	memcpy(to, from, bytes);
}

double card_level(double value)
{
	return value / 2;
}

void card_note(int epoch)
{
	(void)epoch;
}

void card_books(void)
{
	for (int i = 0; i < items; i++)
		if (item[i].over)
			printf("ran %s %d %lu %lu\n", item[i].name, item[i].queue, item[i].start, item[i].end);
}
