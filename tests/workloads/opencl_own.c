// cc: -lOpenCL
/*
 * opencl_own.c - memory that the program takes in functions that the driver calls, inside of the program's own calls where it likes.
 */
#include "opencl.h"

enum { MIB = 1 << 20 };

static cl_context context;
static char *kept[8];

static void keep(int i)
{
	kept[i] = used(malloc((i + 1) * MIB));
	memset(kept[i], 1, (i + 1) * MIB);
}

struct native { int which; float *data; };

static void CL_CALLBACK native(void *args)
{
	struct native *n = args;

	say("native kernel: %g, its arguments are aligned: %d\n", n->data[9], (uintptr_t)n % 16 == 0);
	keep(n->which);
}

static void CL_CALLBACK bare(void *args)
{
	say("native kernel without arguments: %d\n", args == NULL);
}

static void CL_CALLBACK on_free(cl_command_queue q, cl_uint n, void **list, void *user)
{
	(void)q;
	say("freed %u: %d\n", n, user == &context);
	keep(1);
	for (cl_uint i = 0; i < n; i++)
		clSVMFree(context, list[i]);
}

static void CL_CALLBACK on_notify(const char *what, const void *about, size_t bytes, void *user)
{
	say("notified: %s %zu %zu %d\n", what, *(const size_t *)about, bytes, user == &context);
	keep(2);
}

static void CL_CALLBACK on_end(cl_event e, cl_int status, void *user)
{
	(void)e;
	say("ended %d %d\n", status, user == &context);
	keep(3);
}

static void notify(struct cl *c)
{
	cl_int error;

	for (int i = 0; i < 3; i++) {
		context = clCreateContext(NULL, 1, &c->device, on_notify, &context, &error);
		MUST(error);
		if (i < 2)
			MUST(clReleaseContext(context));
	}
	clCreateBuffer(context, CL_MEM_READ_WRITE, 2ul << 30, NULL, &error);
	say("too much: %d\n", error);
}

static void commands(struct cl *c)
{
	cl_command_queue q = cl_queue(c, 0);
	cl_mem m = cl_buffer(c, 4096, CL_MEM_READ_WRITE, NULL);
	struct native args = { 0 };
	const void *where = &args.data;
	void *block[2];
	cl_event e;

	context = c->context;
	MUST(clEnqueueFillBuffer(q, m, &(float){ 7 }, 4, 0, 4096, 0, NULL, NULL));
	MUST(clEnqueueNativeKernel(q, native, &args, sizeof args, 1, &m, &where, 0, NULL, NULL));
	MUST(clEnqueueNativeKernel(q, bare, NULL, 0, 0, NULL, NULL, 0, NULL, NULL));
	MUST(clFinish(q));
	say("wrong: %d %d %d %d\n", clEnqueueNativeKernel(q, NULL, NULL, 0, 0, NULL, NULL, 0, NULL, NULL),
	    clEnqueueNativeKernel(q, native, NULL, 8, 0, NULL, NULL, 0, NULL, NULL), clEnqueueNativeKernel(q, native, &args, 0, 0, NULL, NULL, 0, NULL, NULL),
	    clEnqueueNativeKernel(q, native, &args, sizeof args, 1, &m, NULL, 0, NULL, NULL));
	for (int i = 0; i < 2; i++)
		block[i] = clSVMAlloc(c->context, CL_MEM_READ_WRITE, 4096, 0);
	say("refused %d\n", clEnqueueSVMFree(q, 2, block, on_free, &context, 1, NULL, NULL));
	MUST(clEnqueueSVMFree(q, 2, block, on_free, &context, 0, NULL, &e));
	MUST(clSetEventCallback(e, CL_COMPLETE, on_end, &context));
	MUST(clFinish(q));
	while (!__atomic_load_n(&kept[3], __ATOMIC_ACQUIRE))
		usleep(1000);
	MUST(clReleaseEvent(e));
	MUST(clReleaseMemObject(m));
	MUST(clReleaseCommandQueue(q));
}

int main(int argc, char **argv)
{
	struct cl c = cl_start();

	(void)argv;
	(argc > 1 ? notify : commands)(&c);
	usleep(100000);
	return 0;
}
