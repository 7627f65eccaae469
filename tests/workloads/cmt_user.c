/*
 * cmt_user.c - a program over cmt (see cmt.h): memory, kernels on two queues, copies, waits of each kind. It prints what must be seen
 * of its memory, by the device's own count, and how long it waited; the other numbers are in tests/e2e/metal.py.
 */
#include "cmt.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

static MtObject *device;
static NsUInteger peak;

static void note(void)
{
	NsUInteger size = mtDeviceCurrentAllocatedSize(device);

	if (size > peak)
		peak = size;
}

/* ---- memory ------------------------------------------------------------------------------- */

static MtObject *weights, *scratch, *in_heap;

static void take_memory(void)
{
	static char bytes[100000] = { 1 };
	MtObject *description = mtNewHeapDescriptor(), *heap, *once;

	weights = mtDeviceNewBufferWithBytes(device, bytes, sizeof(bytes), MtResourceStorageModeShared);
	mtResourceLabelSet(weights, "weights");
	scratch = mtDeviceNewBufferWithLength(device, 3 << 20, MtResourceStorageModePrivate);
	mtResourceLabelSet(scratch, "scratch");
	note();
	once = mtDeviceNewBufferWithLength(device, 1 << 20, MtResourceStorageModeShared);
	note();
	mtRetain(once);
	mtRelease(once);
	mtHeapDescriptorSizeSet(description, 2 << 20);
	heap = mtDeviceNewHeapWithDescriptor(device, description);
	mtHeapLabelSet(heap, "pool");
	in_heap = mtHeapNewBufferWithLength(heap, 1 << 19, MtResourceStorageModePrivate);
	mtResourceLabelSet(in_heap, "activations");
	note();
	mtRelease(once);                /* the last one that held it */
	mtRelease(description);
	printf("too much: %d\n", mtDeviceNewBufferWithLength(device, 1ul << 50, 0) == NULL);
}

static void drop_memory(void)
{
	mtRelease(scratch);
	/* weights and the heap are left */
	printf("expect pools.metal.peak_bytes %lu\n", peak);
	printf("expect pools.metal.live_at_exit_bytes %lu\n", mtDeviceCurrentAllocatedSize(device));
	printf("expect pools.metal.allocs 4\nexpect pools.metal.frees 2\n");
}

/* ---- work --------------------------------------------------------------------------------- */

static MtObject *pipeline(MtObject *library, const char *name)
{
	MtObject *function = mtNewFunctionWithName(library, name), *made = mtNewComputePipelineStateWithFunction(device, function, NULL);

	mtRelease(function);
	return made;
}

static void dispatch(MtObject *commands, MtObject *state, MtSize groups, MtSize threads)
{
	MtObject *encoder = mtNewComputeCommandEncoder(commands);

	mtComputeCommandEncoderSetComputePipelineState(encoder, state);
	mtComputeCommandEncoderDispatchThreadgroups_threadsPerThreadgroup(encoder, groups, threads);
	mtComputeCommandEncoderEndEncoding(encoder);
	mtRelease(encoder);
}

static unsigned long waited;

static unsigned long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (unsigned long)t.tv_sec * 1000000000ul + (unsigned long)t.tv_nsec;
}

static void wait_for(MtObject *commands)
{
	unsigned long begin = now();

	mtCommandBufferWaitUntilCompleted(commands);
	waited += now() - begin;
}

static void with_times(MtObject *commands)
{
	wait_for(commands);
	printf("took %d\n", mtCommandBufferGPUEndTime(commands) >= mtCommandBufferGPUStartTime(commands));
	mtRelease(commands);
}

/* One kernel in a command buffer, and the device's times for it. */
static void alone(MtObject *queue, MtObject *relu)
{
	for (int i = 0; i < 5; i++) {
		MtObject *commands = mtNewCommandBuffer(queue);

		dispatch(commands, relu, (MtSize) { 16, 2, 1 }, (MtSize) { 32, 4, 2 });
		mtCommandBufferCommit(commands);
		mtCommandBufferWaitUntilScheduled(commands);
		with_times(commands);
	}
}

/* Several in one; threads that are no multiple of a group's. */
static void together(MtObject *queue, MtObject *relu, MtObject *softmax)
{
	MtObject *commands = mtNewCommandBuffer(queue), *encoder = mtNewComputeCommandEncoder(commands), *blit;

	mtComputeCommandEncoderSetComputePipelineState(encoder, softmax);
	mtComputeCommandEncoderDispatchThread_threadsPerThreadgroup(encoder, (MtSize) { 1000, 7, 1 }, (MtSize) { 64, 2, 1 });
	mtComputeCommandEncoderSetComputePipelineState(encoder, relu);
	mtComputeCommandEncoderDispatchThreadgroups_threadsPerThreadgroup(encoder, (MtSize) { 3, 1, 1 }, (MtSize) { 8, 1, 1 });
	mtComputeCommandEncoderEndEncoding(encoder);
	mtRelease(encoder);
	blit = mtNewBlitCommandEncoder(commands);
	mtBlitCommandEncoderCopyFromBufferToBuffer(blit, weights, 0, scratch, 4096, 100000);
	mtBlitCommandEncoderFillBuffer(blit, scratch, (NsRange) { 0, 50000 }, 0);
	mtCommandEncoderEndEncoding(blit);
	mtRelease(blit);
	mtCommandBufferCommit(commands);
	with_times(commands);
}

/* Nobody asks for the times; who waits for the last one waits for all of the queue. */
static void in_a_row(MtObject *queue, MtObject *softmax)
{
	MtObject *commands[3];

	for (int i = 0; i < 3; i++) {
		commands[i] = mtNewCommandBuffer(queue);
		if (i < 2)
			dispatch(commands[i], softmax, (MtSize) { 5, 1, 1 }, (MtSize) { 1, 1, 1 });
		mtCommandBufferCommit(commands[i]);
	}
	wait_for(commands[2]);
	for (int i = 0; i < 3; i++)
		mtRelease(commands[i]);
}

static void polled(MtObject *queue, MtObject *relu)
{
	MtObject *commands = mtNewCommandBuffer(queue);

	dispatch(commands, relu, (MtSize) { 9, 9, 9 }, (MtSize) { 1, 1, 1 });
	mtCommandBufferCommit(commands);
	while (mtCommandBufferStatus(commands) != MtCommandBufferStatusCompleted)
		usleep(100);
	mtRelease(commands);
}

int main(void)
{
	MtObject *library, *compute, *other, *relu, *softmax;
	char source[] = "relu 3000 softmax 2000";

	device = mtCreateSystemDefaultDevice();
	take_memory();
	library = mtNewLibraryWithSource(device, source, NULL, NULL);
	relu = pipeline(library, "relu");
	softmax = pipeline(library, "softmax");
	compute = mtNewCommandQueue(device);
	mtCommandQueueLabelSet(compute, "compute");
	other = mtNewCommandQueue(device);
	mtCommandQueueLabelSet(other, "other");
	alone(compute, relu);
	together(compute, relu, softmax);
	in_a_row(other, softmax);
	polled(other, relu);
	dispatch(mtNewCommandBuffer(other), relu, (MtSize) { 1, 1, 1 }, (MtSize) { 1, 1, 1 });          /* never committed */
	drop_memory();
	printf("waited %lu\n", waited);
	standin_books();
}
