// cc: -ldl
/*
 * opencl_loaders.c LIBRARY@VENDORS... - several loaders, or drivers without one, in one process; all are opened before the first is used.
 *
 * Each sees the drivers of its own directory VENDORS only (a driver has none: LIBRARY@). With each, some kernels are run, in turns; then
 * the last one that was opened is closed, and the others go on.
 */
#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "expect.h"
#include "opencl_driver.h"
#include <dlfcn.h>

#define NAMES(X)                                                                                       \
	X(clGetPlatformIDs) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext) X(clCreateCommandQueue) X(clCreateProgramWithSource) \
	X(clBuildProgram) X(clCreateKernel) X(clCreateBuffer) X(clSetKernelArg) X(clEnqueueNDRangeKernel) X(clEnqueueWriteBuffer) \
	X(clFinish) X(clWaitForEvents) X(clReleaseEvent) X(clReleaseMemObject) X(clReleaseKernel) X(clReleaseProgram)            \
	X(clReleaseCommandQueue) X(clReleaseContext) X(clGetExtensionFunctionAddress) X(clGetExtensionFunctionAddressForPlatform)

struct user {
	void *library;
	const char *name;
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_command_queue queue;
	cl_program program;
	cl_kernel kernel;
	cl_mem buffer;
#define X(name) __typeof__(&name) name;
	NAMES(X)
#undef X
};

static void must(const char *what, cl_int error)
{
	if (!error)
		return;
	say("%s: %d\n", what, error);
	_exit(1);
}

static void open_library(struct user *u, char *word)
{
	char *vendors = strchr(word, '@');

	*vendors++ = 0;
	u->name = strrchr(word, '/') ? strrchr(word, '/') + 1 : word;
	u->library = dlopen(word, RTLD_NOW | RTLD_LOCAL);
	if (!u->library) {
		say("%s\n", dlerror());
		_exit(1);
	}
#define X(name) u->name = (__typeof__(u->name))dlsym(u->library, #name);
	NAMES(X)
#undef X
	if (*vendors)
		setenv("OCL_ICD_VENDORS", vendors, 1);
	must("clGetPlatformIDs", u->clGetPlatformIDs(1, &u->platform, NULL));
}

static void start(struct user *u, int number)
{
	char name[100] = "", source[100], kernel[20];
	const char *text = source;
	cl_int error;

	snprintf(kernel, sizeof kernel, "busy_%d", number);
	snprintf(source, sizeof source, "__kernel void %s(__global float *a) { a[get_global_id(0)] *= 2; }", kernel);
	must("clGetDeviceIDs", u->clGetDeviceIDs(u->platform, CL_DEVICE_TYPE_ALL, 1, &u->device, NULL));
	must("clGetDeviceInfo", u->clGetDeviceInfo(u->device, CL_DEVICE_NAME, sizeof name - 1, name, NULL));
	u->context = u->clCreateContext(NULL, 1, &u->device, NULL, NULL, &error);
	u->queue = u->clCreateCommandQueue(u->context, u->device, 0, &error);
	u->program = u->clCreateProgramWithSource(u->context, 1, &text, NULL, &error);
	must("clBuildProgram", u->clBuildProgram(u->program, 0, NULL, "", NULL, NULL));
	u->kernel = u->clCreateKernel(u->program, kernel, &error);
	must("clCreateKernel", error);
	u->buffer = u->clCreateBuffer(u->context, CL_MEM_READ_WRITE, 4096, NULL, &error);
	must("clCreateBuffer", error);
	must("clSetKernelArg", u->clSetKernelArg(u->kernel, 0, sizeof u->buffer, &u->buffer));
	say("%s has %s\n", u->name, name);
}

static void run(struct user *u)
{
	static const char zeros[4096];
	size_t global = 1024;
	cl_event e;

	must("clEnqueueWriteBuffer", u->clEnqueueWriteBuffer(u->queue, u->buffer, CL_TRUE, 0, sizeof zeros, zeros, 0, NULL, NULL));
	must("clEnqueueNDRangeKernel", u->clEnqueueNDRangeKernel(u->queue, u->kernel, 1, NULL, &global, NULL, 0, NULL, NULL));
	must("clEnqueueNDRangeKernel", u->clEnqueueNDRangeKernel(u->queue, u->kernel, 1, NULL, &global, NULL, 0, NULL, &e));
	must("clWaitForEvents", u->clWaitForEvents(1, &e));
	u->clReleaseEvent(e);
	must("clFinish", u->clFinish(u->queue));
}

/* Which extensions it knows, by itself and by its platform; memory from one of them, if there is any. */
static void extensions(struct user *u)
{
	static const char *const names[] = { "clTimerReadsSTANDIN", "clCreateCommandBufferKHR", "clHostMemAllocINTEL" };
	clHostMemAllocINTEL_fn alloc = (clHostMemAllocINTEL_fn)u->clGetExtensionFunctionAddressForPlatform(u->platform, "clHostMemAllocINTEL");
	clMemFreeINTEL_fn free_ = (clMemFreeINTEL_fn)u->clGetExtensionFunctionAddressForPlatform(u->platform, "clMemFreeINTEL");

	for (int i = 0; i < 3; i++)
		say("%s: %s %d %d\n", u->name, names[i], u->clGetExtensionFunctionAddress(names[i]) != NULL,
		    u->clGetExtensionFunctionAddressForPlatform(u->platform, names[i]) != NULL);
	if (alloc && free_)
		free_(u->context, alloc(u->context, NULL, 1234, 0, NULL));
}

static void stop(struct user *u)
{
	u->clReleaseMemObject(u->buffer);
	u->clReleaseKernel(u->kernel);
	u->clReleaseProgram(u->program);
	u->clReleaseCommandQueue(u->queue);
	u->clReleaseContext(u->context);
}

int main(int argc, char **argv)
{
	enum { ROUNDS = 5 };
	struct user u[16];
	int n = argc - 1 < 16 ? argc - 1 : 16;

	for (int i = 0; i < n; i++)
		open_library(&u[i], argv[i + 1]);
	for (int i = 0; i < n; i++)
		start(&u[i], i);
	for (int i = 0; i < n; i++)
		extensions(&u[i]);
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < n; i++)
			run(&u[i]);
	stop(&u[n - 1]);
	dlclose(u[n - 1].library);
	for (int i = 0; i < n - 1; i++) {
		run(&u[i]);
		stop(&u[i]);
	}
	for (int i = 0; i < n; i++)
		say("kernel busy_%d %d\n", i, 2 * (ROUNDS + (i < n - 1)));
	return 0;
}
