// cc: -lOpenCL
/*
 * opencl_queues.c - a queue for every kernel, 20000 of them, each gone before the next is made.
 */
#include "opencl.h"

enum { QUEUES = 20000 };

int main(void)
{
	struct cl c = cl_start();
	cl_kernel k = cl_kernel_of(&c, "scale");
	cl_mem m = cl_buffer(&c, 4096, CL_MEM_READ_WRITE, NULL);
	float by = 2;
	size_t global = 4;

	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof by, &by));
	for (int i = 0; i < QUEUES; i++) {
		cl_command_queue q = cl_queue(&c, i % 3 ? 0 : CL_QUEUE_PROFILING_ENABLE);

		MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL));
		MUST(clFinish(q));
		MUST(clReleaseCommandQueue(q));
	}
	clReleaseMemObject(m);
	clReleaseKernel(k);
	cl_stop(&c);
	expect("devices.0.works_timed", QUEUES);
	expect("losses.unknown_ids", 0);
	return 0;
}
