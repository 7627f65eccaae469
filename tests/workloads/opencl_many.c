// cc: -lOpenCL
/*
 * opencl_many.c - a million enqueues, or as many as asked for, without an event of its own: nothing may pile up.
 */
#include "opencl.h"

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1000000;
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, 0);
	cl_kernel k = cl_kernel_of(&c, "scale");
	cl_mem m = cl_buffer(&c, 4096, CL_MEM_READ_WRITE, NULL);
	float by = 1;
	size_t global = 1;

	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof by, &by));
	for (long i = 0; i < count; i++) {
		MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL));
		if (i % 1000 == 999)
			MUST(clFinish(q));
	}
	MUST(clFinish(q));
	expect("kernels.0.calls", count);
	expect("losses.works_unfinished", 0);
	clReleaseMemObject(m);
	clReleaseKernel(k);
	clReleaseCommandQueue(q);
	cl_stop(&c);
	return 0;
}
