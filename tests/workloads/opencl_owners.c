// cc: -lOpenCL
/*
 * opencl_owners.c - two buffers that are asked for in two places and first used in a third.
 */
#include "opencl.h"

static struct cl c;
static cl_command_queue queue;

static __attribute__((noinline)) cl_mem weights(void)
{
	cl_int error;
	cl_mem m = clCreateBuffer(c.context, CL_MEM_READ_WRITE, 64 << 20, NULL, &error);

	MUST(error);
	return m;
}

static __attribute__((noinline)) cl_mem cache(void)
{
	cl_int error;
	cl_mem m = clCreateBuffer(c.context, CL_MEM_READ_WRITE, 32 << 20, NULL, &error);

	MUST(error);
	return m;
}

static __attribute__((noinline)) void first_use(cl_mem m, size_t bytes)
{
	float zero = 0;

	MUST(clEnqueueFillBuffer(queue, m, &zero, sizeof zero, 0, bytes, 0, NULL, NULL));
}

int main(void)
{
	c = cl_start();
	queue = cl_queue(&c, 0);
	cl_mem a = weights(), b = cache();

	first_use(a, 64 << 20);
	first_use(b, 32 << 20);
	MUST(clFinish(queue));
	MUST(clReleaseMemObject(a));
	MUST(clReleaseMemObject(b));
	return 0;
}
