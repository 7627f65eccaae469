// cc: -lOpenCL
/*
 * opencl_usm.c - Intel's unified shared memory, and pipes, on the stand-in driver: every byte is known.
 */
#include "opencl.h"
#include "opencl_driver.h"

enum { HOST, DEVICE, SHARED, KINDS };

#define EXTENSION(name) static name##_fn name##_
EXTENSION(clHostMemAllocINTEL);
EXTENSION(clDeviceMemAllocINTEL);
EXTENSION(clSharedMemAllocINTEL);
EXTENSION(clMemFreeINTEL);
EXTENSION(clMemBlockingFreeINTEL);
EXTENSION(clEnqueueMemcpyINTEL);
EXTENSION(clEnqueueMemFillINTEL);
EXTENSION(clEnqueueMigrateMemINTEL);
EXTENSION(clEnqueueMemAdviseINTEL);
EXTENSION(clSetKernelArgMemPointerINTEL);

static void *allocate(const struct cl *c, int kind, size_t bytes, cl_int *error)
{
	return kind == HOST   ? clHostMemAllocINTEL_(c->context, NULL, bytes, 0, error)
	       : kind == DEVICE ? clDeviceMemAllocINTEL_(c->context, c->device, NULL, bytes, 0, error)
				: clSharedMemAllocINTEL_(c->context, kind == SHARED ? NULL : c->device, NULL, bytes, 0, error);
}

static void memory(const struct cl *c, struct books *b)
{
	enum { BLOCKS = 32 };
	uint64_t state = 7;
	void *p[BLOCKS] = { 0 };
	size_t bytes[BLOCKS];
	cl_int error;

	for (int i = 0; i < 300; i++) {
		int j = dice(&state) % BLOCKS;

		if (p[j] && i % 5 == 0) {
			say("not freed: %d\n", (i & 1 ? clMemFreeINTEL_ : clMemBlockingFreeINTEL_)(NULL, p[j]));
			continue;
		}
		if (p[j]) {
			books_free(b, bytes[j]);
			MUST((i & 1 ? clMemFreeINTEL_ : clMemBlockingFreeINTEL_)(c->context, p[j]));
			p[j] = NULL;
			continue;
		}
		bytes[j] = 100 + dice(&state) % 50000;
		p[j] = allocate(c, i % KINDS, bytes[j], &error);
		MUST(error);
		books_alloc(b, bytes[j]);
	}
	for (int j = 0; j < BLOCKS; j++)
		if (p[j]) {
			books_free(b, bytes[j]);
			MUST(clMemFreeINTEL_(c->context, p[j]));
		}
	error = 77;
	say("too much: %d", allocate(c, DEVICE, 2ul << 30, &error) != NULL);
	say(" %d, without asking why: %d\n", error, allocate(c, SHARED, 2ul << 30, NULL) != NULL);
}

static void transfers(const struct cl *c, struct books *b)
{
	enum { BYTES = 40000 };
	clCreateCommandQueueWithPropertiesKHR_fn create =
		(clCreateCommandQueueWithPropertiesKHR_fn)clGetExtensionFunctionAddressForPlatform(c->platform, "clCreateCommandQueueWithPropertiesKHR");
	cl_command_queue q = create(c->context, c->device, NULL, NULL);
	cl_kernel k = cl_kernel_of(c, "busy_10");
	char *to = allocate(c, DEVICE, BYTES, NULL), *from = allocate(c, HOST, BYTES, NULL);
	size_t global = 64;
	cl_event e;

	books_alloc(b, BYTES);
	books_alloc(b, BYTES);
	MUST(clEnqueueMemFillINTEL_(q, from, "abcd", 4, BYTES, 0, NULL, NULL));
	MUST(clEnqueueMemFillINTEL_(q, to, "-", 1, BYTES, 0, NULL, &e));
	MUST(clEnqueueMemcpyINTEL_(q, CL_FALSE, to, from, 1000, 1, &e, NULL));
	MUST(clEnqueueMemcpyINTEL_(q, CL_TRUE, to + 1000, from, 2000, 0, NULL, NULL));
	say("copied %.4s %.4s %c\n", to, to + 2996, to[3000]);
	MUST(clSetKernelArgMemPointerINTEL_(k, 0, to));
	MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL));
	MUST(clEnqueueMigrateMemINTEL_(q, to, BYTES, 0, 0, NULL, NULL));
	MUST(clEnqueueMemAdviseINTEL_(q, to, BYTES, 0, 0, NULL, NULL));
	MUST(clFinish(q));
	books_free(b, BYTES);
	MUST(clMemBlockingFreeINTEL_(c->context, to));
	clReleaseEvent(e);
	clReleaseKernel(k);
	clReleaseCommandQueue(q);
	(void)from;                     /* never freed */
}

static void pipes(const struct cl *c, struct books *b)
{
	cl_int error;
	cl_mem pipe = clCreatePipe(c->context, CL_MEM_HOST_NO_ACCESS, 16, 100, NULL, &error);

	MUST(error);
	books_alloc(b, 1600);
	clReleaseMemObject(pipe);
	books_free(b, 1600);
}

int main(void)
{
	struct cl c = cl_start();
	struct books b = { 0 };

#define GET(name) name##_ = (name##_fn)clGetExtensionFunctionAddressForPlatform(c.platform, #name)
	GET(clHostMemAllocINTEL), GET(clDeviceMemAllocINTEL), GET(clSharedMemAllocINTEL), GET(clMemFreeINTEL), GET(clMemBlockingFreeINTEL);
	GET(clEnqueueMemcpyINTEL), GET(clEnqueueMemFillINTEL), GET(clEnqueueMigrateMemINTEL), GET(clEnqueueMemAdviseINTEL);
	GET(clSetKernelArgMemPointerINTEL);
	memory(&c, &b);
	transfers(&c, &b);
	pipes(&c, &b);
	expect("devices.0.peak_bytes", b.peak);
	expect("devices.0.allocs", b.allocs);
	expect("devices.0.frees", b.frees);
	expect("devices.0.live_at_exit_bytes", b.live);
	expect("devices.0.kernels", 1);
	expect("devices.0.works_timed", 7);
	cl_stop(&c);
	return 0;
}
