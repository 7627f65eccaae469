// cc: -lOpenCL
/*
 * opencl_names.c - kernels with names as long as those of templates' instances, which differ in their last letter only (the stand-in driver).
 */
#include "opencl.h"

static void run(const struct cl *c, cl_command_queue q, size_t length, char last)
{
	char name[1000] = "busy_1_";
	size_t global = 1;
	cl_kernel k;

	memset(name + strlen(name), 'x', length - strlen(name) - 1);
	name[length - 1] = last;
	k = cl_kernel_of(c, name);
	MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL));
	say("kernel %s\n", name);
	clReleaseKernel(k);
}

int main(void)
{
	static const size_t lengths[] = { 20, 254, 255, 256, 600, 900 };
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, 0);

	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		run(&c, q, lengths[i], 'a');
		run(&c, q, lengths[i], 'b');
	}
	MUST(clFinish(q));
	clReleaseCommandQueue(q);
	cl_stop(&c);
	return 0;
}
