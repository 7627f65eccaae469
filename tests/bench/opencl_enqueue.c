// cc: -lOpenCL
/*
 * opencl_enqueue.c - what one enqueue costs the host, and what a loop of kernels takes.
 *
 *   opencl_enqueue tiny       ns per clEnqueueNDRangeKernel, of the call alone
 *   opencl_enqueue long       ns per round of a loop of kernels that take a millisecond or a little more each
 */
#include "../workloads/opencl.h"
#include <time.h>

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

int main(int argc, char **argv)
{
	enum { BATCHES = 60, BATCH = 200 };
	static double ns[BATCHES];
	int tiny = argc < 2 || strcmp(argv[1], "long"), batch = tiny ? BATCH : 10, rounds = tiny ? 1 : 1900;
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, 0);
	cl_kernel k = cl_kernel_of(&c, "spin");
	cl_mem m = cl_buffer(&c, 1 << 16, CL_MEM_READ_WRITE, NULL);
	size_t global = tiny ? 1 : 512;

	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof rounds, &rounds));
	MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL));
	MUST(clFinish(q));
	for (int b = 0; b < BATCHES; b++) {
		double start = now(), end;

		for (int i = 0; i < batch; i++)
			MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL));
		end = now();
		MUST(clFinish(q));
		ns[b] = ((tiny ? end : now()) - start) / batch;
	}
	qsort(ns, BATCHES, sizeof *ns, by_value);
	say("ns %.1f\n", ns[BATCHES / 4]);
	clReleaseMemObject(m);
	clReleaseKernel(k);
	clReleaseCommandQueue(q);
	cl_stop(&c);
	return 0;
}
