// cc: -lOpenCL
/*
 * opencl_all.c - every kind of command, with events of its own and without, in two contexts, in order and out of order.
 *
 * Prints for each "work NAME KIND BYTES QUEUED SUBMITTED START END": what the device says of it (0 where nobody asked), and for
 * its memory what is expected of the device.
 */
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include "opencl.h"
#include <stdbool.h>

enum { SIDE = 32, BYTES = SIDE * SIDE * 4, SPINS = 4 };

struct seen { const char *name, *kind; size_t bytes; cl_event event; };

static struct seen seen[128];
static int count;
static bool with_events;

/* Where a command's event goes; NULL in the run without. */
static cl_event *note(const char *name, const char *kind, size_t bytes)
{
	seen[count] = (struct seen){ name, kind, bytes };
	return with_events ? &seen[count++].event : (count++, NULL);
}

static unsigned long long stamp(cl_event e, cl_profiling_info what)
{
	cl_ulong t = 0;

	if (e)
		MUST(clGetEventProfilingInfo(e, what, sizeof t, &t, NULL));
	return t;
}

static void tell(void)
{
	for (int i = 0; i < count; i++) {
		cl_event e = seen[i].event;

		say("work %s %s %zu %llu %llu %llu %llu\n", seen[i].name, seen[i].kind, seen[i].bytes, stamp(e, CL_PROFILING_COMMAND_QUEUED),
		    stamp(e, CL_PROFILING_COMMAND_SUBMIT), stamp(e, CL_PROFILING_COMMAND_START), stamp(e, CL_PROFILING_COMMAND_END));
		if (e)
			clReleaseEvent(e);
	}
	count = 0;
}

/* name of the call, kind, bytes, arguments before the wait list */
#define DO(call, kind, bytes, ...) MUST(call(__VA_ARGS__, 0, NULL, note(#call, kind, bytes)))

static void buffers(const struct cl *c, cl_command_queue q, cl_mem a, cl_mem b)
{
	static char host[BYTES];
	size_t origin[3] = { 0 }, region[3] = { 64, 4, 2 };
	cl_int error;
	void *p;

	(void)c;
	DO(clEnqueueWriteBuffer, "write", BYTES, q, a, CL_FALSE, 0, BYTES, host);
	DO(clEnqueueCopyBuffer, "copy", 1000, q, a, b, 0, 0, 1000);
	DO(clEnqueueFillBuffer, "fill", 2048, q, b, "abcd", 4, 0, 2048);
	DO(clEnqueueReadBuffer, "read", 512, q, b, CL_TRUE, 0, 512, host);
	say("read %.4s\n", host);
	DO(clEnqueueWriteBufferRect, "write", 512, q, a, CL_FALSE, origin, origin, region, 0, 0, 0, 0, host);
	DO(clEnqueueCopyBufferRect, "copy", 512, q, a, b, origin, origin, region, 0, 0, 0, 0);
	DO(clEnqueueReadBufferRect, "read", 512, q, b, CL_TRUE, origin, origin, region, 0, 0, 0, 0, host);
	p = clEnqueueMapBuffer(q, a, CL_TRUE, CL_MAP_WRITE, 0, 600, 0, NULL, note("clEnqueueMapBuffer", "map", 600), &error);
	MUST(error);
	DO(clEnqueueUnmapMemObject, "unmap", 0, q, a, p);
	DO(clEnqueueMigrateMemObjects, "other", 0, q, 1, &a, CL_MIGRATE_MEM_OBJECT_HOST);
}

static void images(const struct cl *c, cl_command_queue q, cl_mem buffer)
{
	cl_image_format format = { CL_RGBA, CL_UNSIGNED_INT8 };
	cl_image_desc desc = { .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = SIDE, .image_height = SIDE };
	size_t origin[3] = { 0 }, region[3] = { SIDE, SIDE, 1 }, row;
	static char host[BYTES];
	cl_uint color[4] = { 1, 2, 3, 4 };
	cl_int error;
	cl_mem i = clCreateImage(c->context, CL_MEM_READ_WRITE, &format, &desc, NULL, &error), j;
	void *p;

	MUST(error);
	j = clCreateImage(c->context, CL_MEM_READ_ONLY, &format, &desc, NULL, &error);
	MUST(error);
	DO(clEnqueueFillImage, "fill", BYTES, q, i, color, origin, region);
	DO(clEnqueueCopyImage, "copy", BYTES, q, i, j, origin, origin, region);
	DO(clEnqueueReadImage, "read", BYTES, q, j, CL_TRUE, origin, region, 0, 0, host);
	say("image %d %d\n", host[0], host[BYTES - 1]);
	DO(clEnqueueWriteImage, "write", BYTES, q, i, CL_FALSE, origin, region, 0, 0, host);
	DO(clEnqueueCopyImageToBuffer, "copy", BYTES, q, i, buffer, origin, region, 0);
	DO(clEnqueueCopyBufferToImage, "copy", BYTES, q, buffer, i, 0, origin, region);
	p = clEnqueueMapImage(q, i, CL_TRUE, CL_MAP_READ, origin, region, &row, NULL, 0, NULL, note("clEnqueueMapImage", "map", BYTES), &error);
	MUST(error);
	DO(clEnqueueUnmapMemObject, "unmap", 0, q, i, p);
	MUST(clFinish(q));
	clReleaseMemObject(i);
	clReleaseMemObject(j);
}

static void shared(const struct cl *c, cl_command_queue q)
{
	void *p = clSVMAlloc(c->context, CL_MEM_READ_WRITE, 8000, 0), *other = clSVMAlloc(c->context, CL_MEM_READ_WRITE, 4000, 0);
	const void *list[] = { p };

	DO(clEnqueueSVMMemFill, "fill", 8000, q, p, "x", 1, 8000);
	DO(clEnqueueSVMMap, "map", 8000, q, CL_TRUE, CL_MAP_WRITE, p, 8000);
	DO(clEnqueueSVMUnmap, "unmap", 0, q, p);
	DO(clEnqueueSVMMemcpy, "copy", 4000, q, CL_TRUE, other, p, 4000);
	DO(clEnqueueSVMMigrateMem, "other", 0, q, 1, list, NULL, CL_MIGRATE_MEM_OBJECT_HOST);
	say("shared %.4s\n", (char *)other);
	DO(clEnqueueSVMFree, "other", 0, q, 1, &other, NULL, NULL);
	MUST(clFinish(q));
	clSVMFree(c->context, p);
}

static void CL_CALLBACK native(void *argument)
{
	__atomic_add_fetch(*(int **)argument, 1, __ATOMIC_SEQ_CST);
}

static void kernels_(const struct cl *c, cl_command_queue q, cl_mem m)
{
	cl_kernel scale = cl_kernel_of(c, "scale"), spin = cl_kernel_of(c, "spin"), clone;
	size_t global[2] = { 64, 4 }, local[2] = { 16, 1 }, one = 1;
	float by = 2;
	cl_event e, *event;
	int rounds = 2000000, calls = 0, *argument = &calls;
	cl_int error;

	MUST(clSetKernelArg(scale, 0, sizeof m, &m));
	MUST(clSetKernelArg(scale, 1, sizeof by, &by));
	MUST(clSetKernelArg(spin, 0, sizeof m, &m));
	MUST(clSetKernelArg(spin, 1, sizeof rounds, &rounds));
	clone = clCloneKernel(scale, &error);
	MUST(error);
	MUST(clEnqueueNDRangeKernel(q, scale, 2, NULL, global, local, 0, NULL, note("scale", "kernel", 0)));
	MUST(clEnqueueTask(q, scale, 0, NULL, note("scale", "kernel", 0)));
	MUST(clEnqueueNativeKernel(q, native, &argument, sizeof argument, 0, NULL, NULL, 0, NULL, note("native_kernel", "kernel", 0)));
	MUST(clEnqueueNDRangeKernel(q, clone, 1, NULL, global, NULL, 0, NULL, note("scale", "kernel", 0)));
	MUST(clFinish(q));
	for (int i = 0; i < SPINS; i++)
		MUST(clEnqueueNDRangeKernel(q, spin, 1, NULL, &one, NULL, 0, NULL, note("spin", "kernel", 0)));
	MUST(clFlush(q));
	MUST(clEnqueueMarkerWithWaitList(q, 0, NULL, note("clEnqueueMarkerWithWaitList", "mark", 0)));
	MUST(clEnqueueBarrierWithWaitList(q, 0, NULL, note("clEnqueueBarrierWithWaitList", "mark", 0)));
	/* OpenCL 1.0's: the first must have an event, the second has none and is a call only; PoCL has no clEnqueueWaitForEvents */
	event = note("clEnqueueMarker", "mark", 0);
	MUST(clEnqueueMarker(q, event ? event : &e));
	MUST(clEnqueueBarrier(q));
	MUST(clFinish(q));
	if (!event)
		clReleaseEvent(e);
	say("native %d\n", calls);
	clReleaseKernel(scale);
	clReleaseKernel(spin);
	clReleaseKernel(clone);
}

/* Waits for an event that the program sets itself: once to good, once to bad, which fails what waits for it. */
static void user_events(const struct cl *c, cl_command_queue q, cl_mem m)
{
	for (int bad = 0; bad < 2; bad++) {
		cl_event gate = clCreateUserEvent(c->context, NULL), e;
		cl_int status = 77;

		MUST(clEnqueueFillBuffer(q, m, "-", 1, 0, 100, 1, &gate, &e));
		MUST(clFlush(q));
		usleep(20000);
		MUST(clSetUserEventStatus(gate, bad ? -5 : CL_COMPLETE));
		say("waited %d\n", clWaitForEvents(1, &e) < 0);
		MUST(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
		say("status %d\n", status < 0);
		clReleaseEvent(e);
		clReleaseEvent(gate);
	}
}

static void memory(const struct cl *c, struct books *b)
{
	cl_image_format format = { CL_RGBA, CL_FLOAT };
	cl_image_desc flat = { .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 100, .image_height = 50 };
	cl_image_desc deep = { .image_type = CL_MEM_OBJECT_IMAGE3D, .image_width = 20, .image_height = 10, .image_depth = 5 };
	cl_buffer_region first = { 0, 4096 }, second = { 8192, 2048 };
	cl_image_desc line = { .image_type = CL_MEM_OBJECT_IMAGE1D_BUFFER, .image_width = 256 };
	cl_mem whole = cl_buffer(c, 16384, CL_MEM_READ_ONLY | CL_MEM_ALLOC_HOST_PTR, NULL), part[3], image[5];
	cl_int error;

	books_alloc(b, 16384);
	part[0] = clCreateSubBuffer(whole, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &first, &error);
	MUST(error);
	part[1] = clCreateSubBuffer(whole, CL_MEM_READ_ONLY, CL_BUFFER_CREATE_TYPE_REGION, &second, &error);
	MUST(error);
	image[0] = clCreateImage(c->context, CL_MEM_READ_WRITE, &format, &flat, NULL, &error);
	MUST(error);
	books_alloc(b, 100 * 50 * 16);
	image[1] = clCreateImage(c->context, CL_MEM_READ_WRITE, &format, &deep, NULL, &error);
	MUST(error);
	books_alloc(b, 20 * 10 * 5 * 16);
	line.mem_object = whole;
	part[2] = clCreateImage(c->context, CL_MEM_READ_ONLY, &format, &line, NULL, &error);
	MUST(error);
	clReleaseMemObject(whole);              /* lives on as long as its parts */
	for (int i = 0; i < 3; i++)
		clReleaseMemObject(part[2 - i]);
	books_free(b, 16384);
	image[2] = clCreateImage2D(c->context, CL_MEM_READ_WRITE, &format, 10, 10, 0, NULL, &error);
	MUST(error);
	books_alloc(b, 10 * 10 * 16);
	image[3] = clCreateImage3D(c->context, CL_MEM_READ_WRITE, &format, 10, 10, 10, 0, 0, NULL, &error);
	MUST(error);
	books_alloc(b, 10 * 10 * 10 * 16);
	image[4] = clCreateBufferWithProperties(c->context, NULL, CL_MEM_READ_WRITE, 333, NULL, &error);
	say("with properties %d\n", error);
	if (image[4])
		books_alloc(b, 333);
	for (int i = 0; i < 5; i++)
		if (image[i])
			clReleaseMemObject(image[i]);
	if (image[4])
		books_free(b, 333);
	books_free(b, 10 * 10 * 16);
	books_free(b, 10 * 10 * 10 * 16);
	books_free(b, 100 * 50 * 16);
	books_free(b, 20 * 10 * 5 * 16);
}

static void run(struct cl c, cl_command_queue_properties p, struct books *b)
{
	cl_command_queue q = cl_queue(&c, p), other = cl_queue(&c, (p & CL_QUEUE_PROFILING_ENABLE) | CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_mem first = cl_buffer(&c, BYTES, CL_MEM_READ_WRITE, NULL), second = cl_buffer(&c, BYTES, CL_MEM_READ_WRITE, NULL);

	books_alloc(b, BYTES);
	books_alloc(b, BYTES);
	with_events = p & CL_QUEUE_PROFILING_ENABLE;
	buffers(&c, q, first, second);
	images(&c, q, first);
	b->allocs += 2, b->frees += 2;          /* never the peak */
	shared(&c, q);
	b->allocs += 2, b->frees += 2;
	kernels_(&c, q, first);
	kernels_(&c, other, first);
	tell();
	clReleaseMemObject(first);
	clReleaseMemObject(second);
	books_free(b, BYTES);
	books_free(b, BYTES);
	clReleaseCommandQueue(q);
	clReleaseCommandQueue(other);
}

int main(void)
{
	struct cl c = cl_start(), another = cl_start();
	struct books b = { 0 };
	cl_command_queue q;
	cl_mem m;

	memory(&c, &b);
	run(c, CL_QUEUE_PROFILING_ENABLE, &b);
	run(another, 0, &b);
	q = cl_queue(&c, 0);
	m = cl_buffer(&c, BYTES, CL_MEM_READ_WRITE, NULL);
	books_alloc(&b, BYTES);
	user_events(&c, q, m);
	clReleaseMemObject(m);
	books_free(&b, BYTES);
	clReleaseCommandQueue(q);
	expect("devices.0.allocs", b.allocs);
	expect("devices.0.frees", b.frees);
	expect("devices.0.live_at_exit_bytes", 0);
	expect("devices.0.peak_bytes", b.peak);
	expect("losses.works_failed", 1);
	cl_stop(&c);
	cl_stop(&another);
	return 0;
}
