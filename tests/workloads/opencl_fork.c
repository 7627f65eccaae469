// cc: -lOpenCL
/*
 * opencl_fork.c - a child uses the queue, the kernel and the memory that its parent made, and lets go of them; then the parent goes on.
 * For a device that works on the thread that calls it, as others have lost their threads.
 */
#include "opencl.h"
#include <sys/wait.h>

static struct cl c;
static cl_command_queue q;
static cl_kernel k;
static cl_mem m;

static void run(int times)
{
	size_t global = 64;

	for (int i = 0; i < times; i++)
		MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL));
	MUST(clFinish(q));
}

static void let_go(void)
{
	MUST(clReleaseMemObject(m));
	MUST(clReleaseKernel(k));
	MUST(clReleaseCommandQueue(q));
	cl_stop(&c);
}

static void child(void)
{
	cl_buffer_region half = { 0, 2048 };
	cl_mem own = cl_buffer(&c, 8192, CL_MEM_READ_WRITE, NULL), part = clCreateSubBuffer(m, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &half, NULL);
	char data[8192] = { 0 };

	run(3);
	MUST(clEnqueueWriteBuffer(q, own, CL_TRUE, 0, sizeof data, data, 0, NULL, NULL));
	MUST(clReleaseMemObject(own));
	MUST(clReleaseMemObject(part));
	let_go();
	say("child\n");
	_exit(0);
}

int main(void)
{
	float by = 2;
	int status;
	pid_t pid;

	c = cl_start();
	q = cl_queue(&c, 0);
	k = cl_kernel_of(&c, "scale");
	m = cl_buffer(&c, 4096, CL_MEM_READ_WRITE, NULL);
	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof by, &by));
	run(1);
	pid = fork();
	if (!pid)
		child();
	waitpid(pid, &status, 0);
	run(1);
	let_go();
	say("parent %d\n", status);
	return 0;
}
