// cc: -lOpenCL
/*
 * opencl_crowd.c - two hundred kernels that are handed over, one after the other, to a queue that keeps no order, before the first may run.
 */
#include "opencl.h"

enum { KERNELS = 200 };

int main(void)
{
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	cl_kernel k = cl_kernel_of(&c, "scale");
	cl_mem m = cl_buffer(&c, 4096, CL_MEM_READ_WRITE, NULL);
	cl_event gate = clCreateUserEvent(c.context, NULL);
	size_t global = 64;
	float by = 2;

	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof by, &by));
	for (int i = 0; i < KERNELS; i++)
		MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 1, &gate, NULL));
	MUST(clFlush(q));
	MUST(clSetUserEventStatus(gate, CL_COMPLETE));
	MUST(clFinish(q));
	clReleaseEvent(gate);
	clReleaseMemObject(m);
	clReleaseKernel(k);
	clReleaseCommandQueue(q);
	cl_stop(&c);
	expect("kernels.0.calls", KERNELS);
	expect("devices.0.works_observed", KERNELS);
	return 0;
}
