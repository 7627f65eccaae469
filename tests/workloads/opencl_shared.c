// cc: -lOpenCL
/*
 * opencl_shared.c - more shared memory at once than anybody expects: a call that is to free it is refused, then one frees it. A call that leaves
 * that to the program, which keeps the block for a while, and one that fails, free nothing.
 */
#include "opencl.h"

static void CL_CALLBACK keep(cl_command_queue q, cl_uint n, void **list, void *kept)
{
	(void)q, (void)n;
	*(void **)kept = list[0];
}

static void not_freed(const struct cl *c, cl_command_queue q, void *block[2])
{
	cl_event gate = clCreateUserEvent(c->context, NULL), e;
	void *kept = NULL;

	MUST(clEnqueueSVMFree(q, 1, &block[0], keep, &kept, 0, NULL, NULL));
	MUST(clFinish(q));
	say("kept %d\n", kept == block[0]);
	MUST(clEnqueueSVMFree(q, 1, &block[1], NULL, NULL, 1, &gate, &e));
	MUST(clSetUserEventStatus(gate, -5));
	say("failed %d\n", clWaitForEvents(1, &e) < 0);
	clReleaseEvent(e);
	clReleaseEvent(gate);
}

int main(void)
{
	enum { BLOCKS = 40, KEPT = 3, BYTES = 1 << 16 };
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, 0);
	void *block[BLOCKS], *other;

	for (int i = 0; i < BLOCKS; i++)
		block[i] = clSVMAlloc(c.context, CL_MEM_READ_WRITE, BYTES, 0);
	not_freed(&c, q, block + BLOCKS - 2);
	other = clSVMAlloc(c.context, CL_MEM_READ_WRITE, BYTES, 0);
	clSVMFree(c.context, other);
	clSVMFree(c.context, block[BLOCKS - 1]);
	clSVMFree(c.context, block[BLOCKS - 2]);
	say("refused %d\n", clEnqueueSVMFree(q, BLOCKS - 2, block, NULL, NULL, 1, NULL, NULL));
	MUST(clEnqueueSVMFree(q, BLOCKS - 2 - KEPT, block, NULL, NULL, 0, NULL, NULL));
	MUST(clFinish(q));
	clReleaseCommandQueue(q);
	cl_stop(&c);
	expect("devices.0.allocs", BLOCKS + 1);
	expect("devices.0.frees", BLOCKS + 1 - KEPT);
	expect("devices.0.peak_bytes", (BLOCKS + 1) * BYTES);
	expect("devices.0.live_at_exit_bytes", KEPT * BYTES);
	return 0;
}
