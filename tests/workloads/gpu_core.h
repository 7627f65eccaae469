/*
 * gpu_core.h - what the stand-ins for GPU run-times have in common: a card that is a thread, and books of what it really did.
 *
 *   the program's thread --gpu_put()--> items in order --the card's thread--> over, with the times at which it really ran
 *
 * The card's memory comes straight from the kernel, past libc, as a driver's does.
 */
#ifndef GPU_CORE_H
#define GPU_CORE_H

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { GPU_ITEMS = 1024, GPU_STREAMS = 16, GPU_BLOCKS = 64, GPU_LIMIT = 1 << 30, GPU_ALL = -1, GPU_DEVICE = 0, GPU_PINNED = 1 };

struct gpu_item {
	const char *name;
	int stream, us, over;
	void *to;
	const void *from;               /* NULL: a kernel, or a fill */
	size_t bytes;
	int fill;
	unsigned long start, end;
};

struct gpu_block {
	void *at;
	size_t bytes;
	int kind;
};

static struct gpu_item gpu_item[GPU_ITEMS];
static struct gpu_block gpu_block[GPU_BLOCKS];
static struct { size_t live, peak; int allocs, frees; } gpu_book[2];
static struct { char used, captures; } gpu_stream[GPU_STREAMS];         /* number 0 is the default one; a handle points here */
static int gpu_items;
static pthread_mutex_t gpu_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gpu_changed = PTHREAD_COND_INITIALIZER;

static unsigned long gpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

static void gpu_do(struct gpu_item *i)
{
	i->start = gpu_now();
	if (i->us)
		usleep((unsigned)i->us);
	if (i->from)
		memcpy(i->to, i->from, i->bytes);
	else if (i->to)
		memset(i->to, i->fill, i->bytes);
	i->end = gpu_now();
}

static void *gpu_card(void *unused)
{
	int next = 0;

	pthread_mutex_lock(&gpu_lock);
	for (;;) {
		if (next == gpu_items) {
			pthread_cond_wait(&gpu_changed, &gpu_lock);
			continue;
		}
		pthread_mutex_unlock(&gpu_lock);
		gpu_do(&gpu_item[next]);
		pthread_mutex_lock(&gpu_lock);
		gpu_item[next++].over = 1;
		pthread_cond_broadcast(&gpu_changed);
	}
	return unused;
}

/* The number of the item that follows: what was put before is below it. */
static int gpu_put(struct gpu_item item)
{
	static int started;
	pthread_t thread;
	int n;

	if (!started) {
		started = 1;
		pthread_create(&thread, NULL, gpu_card, NULL);
		pthread_detach(thread);
	}
	pthread_mutex_lock(&gpu_lock);
	gpu_item[gpu_items++] = item;
	n = gpu_items;
	pthread_cond_broadcast(&gpu_changed);
	pthread_mutex_unlock(&gpu_lock);
	return n;
}

/* Called with the lock. */
static int gpu_is_over(int stream, int before)
{
	for (int i = 0; i < gpu_items && i < before; i++)
		if ((stream == GPU_ALL || gpu_item[i].stream == stream) && !gpu_item[i].over)
			return 0;
	return 1;
}

static int gpu_ask(int stream, int before)
{
	int over;

	pthread_mutex_lock(&gpu_lock);
	over = gpu_is_over(stream, before);
	pthread_mutex_unlock(&gpu_lock);
	return over;
}

static void gpu_wait(int stream, int before)
{
	pthread_mutex_lock(&gpu_lock);
	while (!gpu_is_over(stream, before))
		pthread_cond_wait(&gpu_changed, &gpu_lock);
	pthread_mutex_unlock(&gpu_lock);
}

/* ---- streams ------------------------------------------------------------------------------ */

static int gpu_number(const void *stream)
{
	return stream ? (int)((const char *)stream - (const char *)gpu_stream) / (int)sizeof(*gpu_stream) : 0;
}

static void *gpu_new_stream(void)
{
	int i = 1;

	while (gpu_stream[i].used)
		i++;
	gpu_stream[i].used = 1;
	return &gpu_stream[i];
}

/* ---- memory ------------------------------------------------------------------------------- */

/* 0, or 2: there is not as much. What is pinned is the host's: it comes through libc. */
static int gpu_alloc(void **to, size_t bytes, int kind)
{
	struct gpu_block *b = gpu_block;
	const int prot = PROT_READ | PROT_WRITE, flags = MAP_PRIVATE | MAP_ANONYMOUS;

	if (!bytes || bytes >= GPU_LIMIT)
		return 2;
	while (b->at)
		b++;
	b->at = kind == GPU_PINNED ? mmap(NULL, bytes, prot, flags, -1, 0) : (void *)syscall(SYS_mmap, NULL, bytes, prot, flags, -1, 0);
	b->bytes = bytes;
	b->kind = kind;
	gpu_book[kind].live += bytes;
	gpu_book[kind].allocs++;
	if (gpu_book[kind].live > gpu_book[kind].peak)
		gpu_book[kind].peak = gpu_book[kind].live;
	*to = b->at;
	return 0;
}

/* 0, or 1: that is none of ours. */
static int gpu_free(void *at, int kind)
{
	struct gpu_block *b = gpu_block;

	if (!at)
		return 0;
	while (b < gpu_block + GPU_BLOCKS && (b->at != at || b->kind != kind))
		b++;
	if (b == gpu_block + GPU_BLOCKS)
		return 1;
	gpu_book[kind].live -= b->bytes;
	gpu_book[kind].frees++;
	if (kind == GPU_PINNED)
		munmap(at, b->bytes);
	else
		syscall(SYS_munmap, at, b->bytes);
	b->at = NULL;
	return 0;
}

/* "ran NAME STREAM BYTES START_NS END_NS" a line, then "memory KIND LIVE PEAK ALLOCS FREES" */
static void gpu_print_books(void)
{
	static const char *const kind[] = { "device", "pinned" };

	for (int i = 0; i < gpu_items; i++)
		if (gpu_item[i].over)
			printf("ran %s %d %zu %lu %lu\n", gpu_item[i].name, gpu_item[i].stream, gpu_item[i].bytes, gpu_item[i].start, gpu_item[i].end);
	for (int i = 0; i < 2; i++)
		printf("memory %s %zu %zu %d %d\n", kind[i], gpu_book[i].live, gpu_book[i].peak, gpu_book[i].allocs, gpu_book[i].frees);
}

#endif
