// cc: -lOpenCL -DCL_USE_DEPRECATED_OPENCL_2_2_APIS
/*
 * opencl_callbacks.c - callbacks that enqueue: of a build, which PoCL calls before clBuildProgram returns; of events, each of which enqueues
 * the next kernel, on the driver's threads or inside of clSetEventCallback; of a buffer's end, inside of clReleaseMemObject, and of a
 * context's.
 */
#include "opencl.h"

enum { CHAIN = 50, BUFFERS = 3 };

static const char *const source = "__kernel void plus(__global int *a) { a[get_global_id(0)] += 1; }\n"
				  "__kernel void times(__global int *a) { a[get_global_id(0)] *= 3; }\n";
static const size_t global = 256;
static cl_command_queue q;
static cl_mem data;
static cl_kernel times;
static volatile int built, left = CHAIN, gone;

static void CL_CALLBACK on_built(cl_program p, void *user)
{
	cl_int error;
	cl_kernel k = clCreateKernel(p, "plus", &error);

	MUST(error);
	MUST(clSetKernelArg(k, 0, sizeof data, &data));
	MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL));
	MUST(clFinish(q));
	MUST(clReleaseKernel(k));
	built += user == &data;
}

static void enqueue_next(void);

static void CL_CALLBACK on_end(cl_event e, cl_int status, void *user)
{
	if (status != CL_COMPLETE || user != &left)
		say("status %d\n", status);
	if (--left > 0)
		enqueue_next();
}

static void enqueue_next(void)
{
	cl_event e;

	MUST(clEnqueueNDRangeKernel(q, times, 1, NULL, &global, NULL, 0, NULL, &e));
	MUST(clSetEventCallback(e, CL_COMPLETE, on_end, (void *)&left));
	MUST(clReleaseEvent(e));
	MUST(clFlush(q));
}

static void CL_CALLBACK on_gone(cl_mem m, void *user)
{
	MUST(clEnqueueNDRangeKernel(q, times, 1, NULL, &global, NULL, 0, NULL, NULL));
	MUST(clFinish(q));
	gone += user == &gone;
}

static void CL_CALLBACK on_context_gone(cl_context c, void *user)
{
	on_gone(NULL, user);
}

int main(void)
{
	struct cl c = cl_start(), another = cl_start();
	int zero = 0, first = 0;
	cl_program p;
	cl_int error;

	q = cl_queue(&c, 0);
	data = cl_buffer(&c, global * sizeof first, CL_MEM_READ_WRITE, NULL);
	MUST(clEnqueueFillBuffer(q, data, &zero, sizeof zero, 0, global * sizeof first, 0, NULL, NULL));
	p = clCreateProgramWithSource(c.context, 1, (const char **)&source, NULL, &error);
	MUST(error);
	MUST(clBuildProgram(p, 1, &c.device, "", on_built, &data));
	while (!built)
		usleep(1000);
	times = clCreateKernel(p, "times", &error);
	MUST(error);
	MUST(clSetKernelArg(times, 0, sizeof data, &data));
	enqueue_next();
	while (left > 0)
		usleep(1000);
	for (int i = 0; i < BUFFERS; i++) {
		cl_mem m = cl_buffer(&c, 4096, CL_MEM_READ_WRITE, NULL);

		MUST(clSetMemObjectDestructorCallback(m, on_gone, (void *)&gone));
		MUST(clReleaseMemObject(m));
	}
	MUST(clSetContextDestructorCallback(another.context, on_context_gone, (void *)&gone));
	cl_stop(&another);
	MUST(clFinish(q));
	MUST(clEnqueueReadBuffer(q, data, CL_TRUE, 0, sizeof first, &first, 0, NULL, NULL));
	say("result %d, built %d, left %d, gone %d\n", first, built, left, gone);
	say("kernel plus 1\nkernel times %d\n", CHAIN + BUFFERS + 1);
	say("errors %d %d %d %d %d\n", clSetEventCallback(NULL, CL_COMPLETE, on_end, NULL), clSetMemObjectDestructorCallback(NULL, on_gone, NULL),
	    clSetContextDestructorCallback(NULL, on_context_gone, NULL), clSetProgramReleaseCallback(p, NULL, NULL),
	    clBuildProgram(NULL, 0, NULL, "", on_built, NULL));
	MUST(clReleaseKernel(times));
	MUST(clReleaseProgram(p));
	MUST(clReleaseMemObject(data));
	MUST(clReleaseCommandQueue(q));
	cl_stop(&c);
	return 0;
}
