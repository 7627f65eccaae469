// cc: -lOpenCL
/*
 * opencl_many.c - a million enqueues, or as many as asked for: nothing may pile up.
 *
 * A thousand without an event of its own and a thousand with, in turns. Prints how much memory it had taken at most (KiB) after
 * a tenth of them, and in the end.
 */
#include "high_water.h"
#include "opencl.h"

int main(int argc, char **argv)
{
	long count = argc > 1 ? atol(argv[1]) : 1000000;
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, 0);
	cl_kernel k = cl_kernel_of(&c, "scale");
	cl_mem m = cl_buffer(&c, 4096, CL_MEM_READ_WRITE, NULL);
	float by = 1;
	long early = 0;
	size_t global = 1;

	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof by, &by));
	for (long i = 0; i < count; i++) {
		cl_event e = NULL;

		MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, i / 1000 % 2 ? &e : NULL));
		if (e)
			clReleaseEvent(e);
		if (i % 1000 == 999)
			MUST(clFinish(q));
		if (i == count / 10)
			early = high_water();
	}
	MUST(clFinish(q));
	say("memory %ld %ld\n", early, high_water());
	expect("kernels.0.calls", count);
	expect("losses.works_unfinished", 0);
	clReleaseMemObject(m);
	clReleaseKernel(k);
	clReleaseCommandQueue(q);
	cl_stop(&c);
	return 0;
}
