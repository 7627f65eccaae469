// cc: -lOpenCL
/*
 * opencl_parts.c - contexts of sub-devices, which PoCL says are their parent's: memory of both kinds, and kernels.
 *
 * With a number: so many contexts, one of the device and one of its part in turn, with handles that come again.
 */
#include "opencl.h"

static cl_context context_of(cl_device_id d)
{
	cl_int error;
	cl_context c = clCreateContext(NULL, 1, &d, NULL, NULL, &error);

	MUST(error);
	return c;
}

/* Nothing of it is released but memory: PoCL 3.1 crashes on that now and then. */
static void work(struct cl *c)
{
	const char *source = kernels;
	cl_kernel k;
	cl_mem m;
	cl_command_queue q;
	size_t global = 64;
	float by = 2;
	void *p;

	c->context = context_of(c->device);
	c->program = clCreateProgramWithSource(c->context, 1, &source, NULL, NULL);
	MUST(clBuildProgram(c->program, 1, &c->device, "", NULL, NULL));
	q = cl_queue(c, 0);
	k = cl_kernel_of(c, "scale");
	m = cl_buffer(c, 1 << 20, CL_MEM_READ_WRITE, NULL);
	p = clSVMAlloc(c->context, CL_MEM_READ_WRITE, 4096, 0);
	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof by, &by));
	for (int i = 0; i < 3; i++)
		MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL));
	MUST(clFinish(q));
	clSVMFree(c->context, p);
	MUST(clReleaseMemObject(m));
	expect("devices.0.kernels", 3);
	expect("devices.0.peak_bytes", (1 << 20) + 4096);
	expect("devices.0.live_at_exit_bytes", 0);
}

static void in_turn(struct cl *c, cl_device_id part, int rounds)
{
	int reused = 0;
	cl_context before = NULL;

	for (int i = 0; i < rounds; i++) {
		c->context = context_of(i % 2 ? c->device : part);
		reused += c->context == before;
		before = c->context;
		MUST(clRetainContext(c->context));
		MUST(clReleaseContext(c->context));
		MUST(clReleaseMemObject(cl_buffer(c, i % 2 ? 1000 : 10, CL_MEM_READ_WRITE, NULL)));
		MUST(clReleaseContext(c->context));
	}
	say("reused %d\n", reused > rounds / 2);
}

int main(int argc, char **argv)
{
	cl_device_partition_property how[] = { CL_DEVICE_PARTITION_EQUALLY, 1, 0 };
	struct cl c;
	cl_device_id part[8];
	cl_uint n;

	MUST(clGetPlatformIDs(1, &c.platform, NULL));
	MUST(clGetDeviceIDs(c.platform, CL_DEVICE_TYPE_ALL, 1, &c.device, NULL));
	MUST(clCreateSubDevices(c.device, how, 8, part, &n));
	if (argc > 1) {
		in_turn(&c, part[0], atoi(argv[1]));
	} else {
		c.device = part[0];
		work(&c);
	}
	return 0;
}
