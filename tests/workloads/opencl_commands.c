// cc: -lOpenCL
/*
 * opencl_commands.c - a command buffer between two kernels, twice; says when each was queued and when it was over.
 */
#include "opencl.h"
#include <CL/cl_ext.h>

#define EXTENSION(name) name##_fn name##_ = (name##_fn)clGetExtensionFunctionAddressForPlatform(c.platform, #name)

int main(void)
{
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, CL_QUEUE_PROFILING_ENABLE);
	cl_kernel spin = cl_kernel_of(&c, "spin"), scale = cl_kernel_of(&c, "scale");
	cl_mem m = cl_buffer(&c, 65536, CL_MEM_READ_WRITE, NULL);
	cl_command_buffer_khr b;
	cl_event e[6];
	int rounds = 3000000, n = 0;
	float by = 1;
	size_t one = 1;
	cl_int error;

	EXTENSION(clCreateCommandBufferKHR);
	EXTENSION(clFinalizeCommandBufferKHR);
	EXTENSION(clReleaseCommandBufferKHR);
	EXTENSION(clEnqueueCommandBufferKHR);
	EXTENSION(clCommandNDRangeKernelKHR);
	EXTENSION(clCommandFillBufferKHR);
	EXTENSION(clCommandCopyBufferKHR);
	EXTENSION(clCommandBarrierWithWaitListKHR);
	MUST(clSetKernelArg(spin, 0, sizeof m, &m));
	MUST(clSetKernelArg(spin, 1, sizeof rounds, &rounds));
	MUST(clSetKernelArg(scale, 0, sizeof m, &m));
	MUST(clSetKernelArg(scale, 1, sizeof by, &by));
	b = clCreateCommandBufferKHR_(1, &q, NULL, &error);
	MUST(error);
	MUST(clCommandFillBufferKHR_(b, NULL, m, "abcd", 4, 0, 4096, 0, NULL, NULL, NULL));
	MUST(clCommandBarrierWithWaitListKHR_(b, NULL, 0, NULL, NULL, NULL));
	MUST(clCommandCopyBufferKHR_(b, NULL, m, m, 0, 4096, 4096, 0, NULL, NULL, NULL));
	MUST(clCommandNDRangeKernelKHR_(b, NULL, NULL, scale, 1, NULL, &one, NULL, 0, NULL, NULL, NULL));
	for (int i = 0; i < 2; i++)
		MUST(clCommandNDRangeKernelKHR_(b, NULL, NULL, spin, 1, NULL, &one, NULL, 0, NULL, NULL, NULL));
	MUST(clFinalizeCommandBufferKHR_(b));
	for (int i = 0; i < 2; i++) {
		MUST(clEnqueueNDRangeKernel(q, spin, 1, NULL, &one, NULL, 0, NULL, &e[n++]));
		MUST(clEnqueueCommandBufferKHR_(0, NULL, b, 0, NULL, &e[n++]));
		MUST(clEnqueueNDRangeKernel(q, spin, 1, NULL, &one, NULL, 0, NULL, &e[n++]));
		MUST(clFinish(q));
	}
	for (int i = 0; i < n; i++) {
		cl_ulong queued, end;

		MUST(clGetEventProfilingInfo(e[i], CL_PROFILING_COMMAND_QUEUED, sizeof queued, &queued, NULL));
		MUST(clGetEventProfilingInfo(e[i], CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
		say("%s %llu %llu\n", i % 3 == 1 ? "group" : "kernel", (unsigned long long)queued, (unsigned long long)end);
		clReleaseEvent(e[i]);
	}
	clReleaseCommandBufferKHR_(b);
	clReleaseKernel(spin);
	clReleaseKernel(scale);
	clReleaseMemObject(m);
	clReleaseCommandQueue(q);
	cl_stop(&c);
	return 0;
}
