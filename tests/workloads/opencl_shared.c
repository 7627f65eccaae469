// cc: -lOpenCL
/*
 * opencl_shared.c - more shared memory at once than anybody expects: a call that is to free it is refused, then one frees it.
 */
#include "opencl.h"

int main(void)
{
	enum { BLOCKS = 40, KEPT = 3, BYTES = 1 << 16 };
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, 0);
	void *block[BLOCKS];

	for (int i = 0; i < BLOCKS; i++)
		block[i] = clSVMAlloc(c.context, CL_MEM_READ_WRITE, BYTES, 0);
	say("refused %d\n", clEnqueueSVMFree(q, BLOCKS, block, NULL, NULL, 1, NULL, NULL));
	MUST(clEnqueueSVMFree(q, BLOCKS - KEPT, block, NULL, NULL, 0, NULL, NULL));
	MUST(clFinish(q));
	clReleaseCommandQueue(q);
	cl_stop(&c);
	expect("devices.0.allocs", BLOCKS);
	expect("devices.0.frees", BLOCKS - KEPT);
	expect("devices.0.peak_bytes", BLOCKS * BYTES);
	expect("devices.0.live_at_exit_bytes", KEPT * BYTES);
	return 0;
}
