/* cc: -shared -fPIC -pthread */
/*
 * cmt.c - see cmt.h: a Metal that is not one. A thread is the GPU; it runs each queue's command buffers in the order of their
 * commits, takes as long for a kernel as its source says, and notes when it did. Its clock is its own: it began long ago and runs a
 * little slow. Memory of buffers comes from the kernel as a driver's does, past libc.
 */
#include "cmt.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { COMMANDS_MAX = 64, BOOKS_MAX = 256 };

struct kernel {
	char name[32];
	unsigned us;
};

/* Any object of Metal's: most use little of it. */
struct object {
	int holders;
	struct object *of;              /* an encoder's command buffer, a command buffer's queue, a buffer's heap */
	struct object *next;            /* in the order of commits */
	char *memory;
	NsUInteger length;
	struct kernel kernel;
	char source[128], label[32];
	struct { char name[40]; unsigned us; } command[COMMANDS_MAX];
	int commands, status;
	unsigned long start, end;       /* ns of CLOCK_MONOTONIC */
};

static struct object *first, **last = &first;
static NsUInteger allocated;
static struct { char name[40], queue[32]; unsigned long start, end; int buffer; } book[BOOKS_MAX];
static struct { unsigned long start, end; } buffer[BOOKS_MAX];
static int books, buffers_run;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

/* ---- the GPU ------------------------------------------------------------------------- */

static double gpu_seconds(unsigned long ns)
{
	return 7000000.25 + (double)ns * 1e-9 * 0.99998;
}

static void run(struct object *commands)
{
	buffers_run++;
	commands->start = now();
	for (int i = 0; i < commands->commands; i++) {
		unsigned long start = now();

		usleep(commands->command[i].us);
		strcpy(book[books].name, commands->command[i].name);
		strcpy(book[books].queue, commands->of->label);
		book[books].buffer = buffers_run;
		book[books].start = start;
		book[books++].end = now();
	}
	commands->end = now();
	buffer[buffers_run].start = commands->start;
	buffer[buffers_run].end = commands->end;
}

static void *gpu(void *unused)
{
	pthread_mutex_lock(&lock);
	for (;;) {
		struct object *next = first;

		if (!next) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		pthread_mutex_unlock(&lock);
		run(next);
		pthread_mutex_lock(&lock);
		first = next->next;
		if (!first)
			last = &first;
		next->status = MtCommandBufferStatusCompleted;
		pthread_cond_broadcast(&changed);
	}
	return unused;
}

/* ---- objects ------------------------------------------------------------------------- */

static struct object *new_object(struct object *of)
{
	struct object *o = calloc(1, sizeof(*o));

	o->holders = 1;
	o->of = of;
	return o;
}

static void take_memory(struct object *o, NsUInteger length)
{
	o->length = length;
	o->memory = (char *)syscall(SYS_mmap, NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0L);
	allocated += length;
}

MtObject *mtRetain(MtObject *object)
{
	((struct object *)object)->holders++;
	return object;
}

void mtRelease(MtObject *object)
{
	struct object *o = object;

	if (--o->holders)
		return;
	if (o->memory && !o->of) {
		syscall(SYS_munmap, o->memory, o->length);
		allocated -= o->length;
	}
	free(o);
}

MtObject *mtCreateSystemDefaultDevice(void)
{
	static struct object *device;
	pthread_t thread;

	if (!device) {
		device = new_object(NULL);
		pthread_create(&thread, NULL, gpu, NULL);
		pthread_detach(thread);
	}
	return device;
}

NsUInteger mtDeviceCurrentAllocatedSize(MtObject *device)
{
	(void)device;
	return allocated;
}

/* ---- memory -------------------------------------------------------------------------- */

static struct object *new_buffer(NsUInteger length)
{
	struct object *o = new_object(NULL);

	take_memory(o, length);
	return o;
}

MtObject *mtDeviceNewBufferWithLength(MtObject *device, NsUInteger length, unsigned options)
{
	(void)device, (void)options;
	return length < 1ul << 40 ? new_buffer(length) : NULL;
}

MtObject *mtDeviceNewBufferWithBytes(MtObject *device, const void *bytes, NsUInteger length, unsigned options)
{
	struct object *o = new_buffer(length);

	(void)device, (void)options;
	return memcpy(o->memory, bytes, length), o;
}

MtObject *mtNewHeapDescriptor(void)
{
	return new_object(NULL);
}

void mtHeapDescriptorSizeSet(MtObject *descriptor, NsUInteger size)
{
	((struct object *)descriptor)->length = size;
}

MtObject *mtDeviceNewHeapWithDescriptor(MtObject *device, MtObject *descriptor)
{
	struct object *o = new_object(NULL);

	(void)device;
	take_memory(o, ((struct object *)descriptor)->length);
	return o;
}

MtObject *mtHeapNewBufferWithLength(MtObject *heap, NsUInteger length, unsigned options)
{
	struct object *o = new_object(heap);

	(void)options;
	o->memory = ((struct object *)heap)->memory;
	o->length = length;
	return o;
}

void *mtBufferContents(MtObject *buffer)
{
	return ((struct object *)buffer)->memory;
}

static void set_label(struct object *o, const char *label)
{
	snprintf(o->label, sizeof(o->label), "%s", label);
}

void mtResourceLabelSet(MtObject *resource, const char *label)
{
	set_label(resource, label);
}

void mtHeapLabelSet(MtObject *heap, const char *label)
{
	set_label(heap, label);
}

/* ---- kernels ------------------------------------------------------------------------- */

MtObject *mtNewLibraryWithSource(MtObject *device, char *source, MtObject *options, MtObject **error)
{
	struct object *o = new_object(NULL);

	(void)device, (void)options, (void)error;
	snprintf(o->source, sizeof(o->source), "%s", source);
	return o;
}

MtObject *mtNewFunctionWithName(MtObject *library, const char *name)
{
	struct object *o = new_object(NULL);
	const char *at = ((struct object *)library)->source;
	int taken;

	for (; sscanf(at, "%31s %u%n", o->kernel.name, &o->kernel.us, &taken) == 2; at += taken)
		if (!strcmp(o->kernel.name, name))
			return o;
	free(o);
	return NULL;
}

MtObject *mtNewComputePipelineStateWithFunction(MtObject *device, MtObject *function, MtObject **error)
{
	struct object *o = new_object(NULL);

	(void)device, (void)error;
	o->kernel = ((struct object *)function)->kernel;
	return o;
}

/* ---- command buffers ----------------------------------------------------------------- */

MtObject *mtNewCommandQueue(MtObject *device)
{
	(void)device;
	return new_object(NULL);
}

void mtCommandQueueLabelSet(MtObject *queue, const char *label)
{
	set_label(queue, label);
}

MtObject *mtNewCommandBuffer(MtObject *queue)
{
	return new_object(queue);
}

void mtCommandBufferCommit(MtObject *commands)
{
	struct object *o = commands;

	pthread_mutex_lock(&lock);
	o->status = MtCommandBufferStatusCommitted;
	*last = o;
	last = &o->next;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
}

void mtCommandBufferWaitUntilScheduled(MtObject *commands)
{
	(void)commands;
}

void mtCommandBufferWaitUntilCompleted(MtObject *commands)
{
	pthread_mutex_lock(&lock);
	while (((struct object *)commands)->status != MtCommandBufferStatusCompleted)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

int mtCommandBufferStatus(MtObject *commands)
{
	pthread_mutex_lock(&lock);
	int status = ((struct object *)commands)->status;

	pthread_mutex_unlock(&lock);
	return status;
}

double mtCommandBufferGPUStartTime(MtObject *commands)
{
	return gpu_seconds(((struct object *)commands)->start);
}

double mtCommandBufferGPUEndTime(MtObject *commands)
{
	return gpu_seconds(((struct object *)commands)->end);
}

/* ---- encoders ------------------------------------------------------------------------ */

static void encode(struct object *encoder, const char *name, unsigned us)
{
	struct object *commands = encoder->of;

	strcpy(commands->command[commands->commands].name, name);
	commands->command[commands->commands++].us = us;
}

static void encode_kernel(struct object *encoder, MtSize size, MtSize group)
{
	if (size.width && group.width)
		encode(encoder, encoder->kernel.name, encoder->kernel.us);
}

MtObject *mtNewComputeCommandEncoder(MtObject *commands)
{
	return new_object(commands);
}

void mtComputeCommandEncoderSetComputePipelineState(MtObject *encoder, MtObject *pipeline)
{
	((struct object *)encoder)->kernel = ((struct object *)pipeline)->kernel;
}

void mtComputeCommandEncoderDispatchThreadgroups_threadsPerThreadgroup(MtObject *encoder, MtSize groups, MtSize threads_of_a_group)
{
	encode_kernel(encoder, groups, threads_of_a_group);
}

void mtComputeCommandEncoderDispatchThread_threadsPerThreadgroup(MtObject *encoder, MtSize threads, MtSize threads_of_a_group)
{
	encode_kernel(encoder, threads, threads_of_a_group);
}

void mtComputeCommandEncoderEndEncoding(MtObject *encoder)
{
	(void)encoder;
}

MtObject *mtNewBlitCommandEncoder(MtObject *commands)
{
	return new_object(commands);
}

void mtBlitCommandEncoderCopyFromBufferToBuffer(MtObject *encoder, MtObject *from, NsUInteger from_offset, MtObject *to, NsUInteger to_offset,
						NsUInteger size)
{
	(void)from, (void)from_offset, (void)to, (void)to_offset;
	encode(encoder, "copy", (unsigned)(size / 1000));
}

void mtBlitCommandEncoderFillBuffer(MtObject *encoder, MtObject *buffer, NsRange range, unsigned char value)
{
	(void)buffer, (void)value;
	encode(encoder, "fill", (unsigned)(range.length / 1000));
}

void mtCommandEncoderEndEncoding(MtObject *encoder)
{
	(void)encoder;
}

/* ---- what is true -------------------------------------------------------------------- */

void standin_books(void)
{
	for (int i = 0; i < books; i++)
		printf("ran %s %s %d %lu %lu\n", book[i].name, book[i].queue, book[i].buffer, book[i].start, book[i].end);
	for (int i = 1; i <= buffers_run; i++)
		printf("buffer %d %lu %lu\n", i, buffer[i].start, buffer[i].end);
}
