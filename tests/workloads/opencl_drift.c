// cc: -lOpenCL
/*
 * opencl_drift.c DEVICE MS - kernels on a device of the stand-in driver whose clock drifts, for so many milliseconds.
 *
 * Prints "work START END" of each kernel in CLOCK_MONOTONIC, as the driver knows it, and how often the device's timer was read.
 */
#include "opencl.h"
#include "opencl_driver.h"
#include <time.h>

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int main(int argc, char **argv)
{
	struct cl c = cl_start();
	clHostTimeSTANDIN_fn host = (clHostTimeSTANDIN_fn)clGetExtensionFunctionAddressForPlatform(c.platform, "clHostTimeSTANDIN");
	clTimerReadsSTANDIN_fn reads = (clTimerReadsSTANDIN_fn)clGetExtensionFunctionAddressForPlatform(c.platform, "clTimerReadsSTANDIN");
	cl_kernel k = cl_kernel_of(&c, "busy_100");
	long long until = now_ns() + (argc > 2 ? atoll(argv[2]) : 1000) * 1000000;
	cl_device_id device[3];
	cl_command_queue q;
	size_t global = 1;
	cl_int error;

	MUST(clGetDeviceIDs(c.platform, CL_DEVICE_TYPE_ALL, 3, device, NULL));
	c.device = device[argc > 1 ? atoi(argv[1]) : 1];
	c.context = clCreateContext(NULL, 1, &c.device, NULL, NULL, &error);
	MUST(error);
	q = cl_queue(&c, CL_QUEUE_PROFILING_ENABLE);
	while (now_ns() < until) {
		cl_event e;
		cl_ulong start, end;

		MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, &e));
		MUST(clWaitForEvents(1, &e));
		MUST(clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_START, sizeof start, &start, NULL));
		MUST(clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, sizeof end, &end, NULL));
		say("work %llu %llu\n", (unsigned long long)host(c.device, start), (unsigned long long)host(c.device, end));
		clReleaseEvent(e);
		usleep(3000);
	}
	clReleaseCommandQueue(q);
	say("reads %llu\n", (unsigned long long)reads(c.device));
	return 0;
}
