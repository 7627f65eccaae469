// cc: -lOpenCL
/*
 * opencl_once.c - a buffer of 64 MiB on a device that is the CPU: it lies in the program's heap.
 */
#include "opencl.h"

int main(void)
{
	enum { BYTES = 64 << 20 };
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, 0);
	cl_mem m = cl_buffer(&c, BYTES, CL_MEM_READ_WRITE, NULL), mine;
	static char host[8192] __attribute__((aligned(4096)));

	MUST(clEnqueueFillBuffer(q, m, "x", 1, 0, BYTES, 0, NULL, NULL));
	MUST(clFinish(q));
	mine = cl_buffer(&c, sizeof host, CL_MEM_USE_HOST_PTR, host);
	clReleaseMemObject(mine);
	clReleaseMemObject(m);
	clReleaseCommandQueue(q);
	cl_stop(&c);
	expect("devices.0.peak_bytes", BYTES);
	expect("devices.0.host_memory", 1);
	return 0;
}
