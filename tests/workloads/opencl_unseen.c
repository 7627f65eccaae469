// cc: -lOpenCL
/*
 * opencl_unseen.c - makes its queue and kernel by the driver's own table of functions, where nobody sees it, as a loader that is
 * linked into a program would.
 */
#include "opencl.h"
#include <CL/cl_icd.h>

int main(void)
{
	struct cl c = cl_start();
	const struct _cl_icd_dispatch *driver = *(const struct _cl_icd_dispatch **)c.context;
	cl_int error;
	cl_command_queue q = driver->clCreateCommandQueue(c.context, c.device, 0, &error);
	cl_kernel k = driver->clCreateKernel(c.program, "scale", &error);
	cl_mem m = cl_buffer(&c, 4096, CL_MEM_READ_WRITE, NULL);
	cl_ulong t;
	float by = 1;
	size_t global = 1;
	cl_event e;

	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof by, &by));
	for (int i = 0; i < 10; i++)
		MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, i < 9 ? NULL : &e));
	MUST(clFinish(q));
	say("times: %d\n", clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, sizeof t, &t, NULL));
	clReleaseEvent(e);
	clReleaseMemObject(m);
	clReleaseKernel(k);
	clReleaseCommandQueue(q);
	cl_stop(&c);
	expect("kernels.0.calls", 10);
	expect("devices.0.works_observed", 10);
	expect("devices.0.allocs", 1);
	expect("losses.unknown_ids", 0);
	return 0;
}
