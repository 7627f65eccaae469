// cc: -shared -fPIC -ldl
/*
 * opencl_proxy.c - a library that has all of OpenCL that a small program needs and is no loader: each function hands on to a loader that it
 * opens with the first call.
 */
#include <dlfcn.h>
#include <stddef.h>

#define HANDED_ON(X)                                                                                                    \
	X(clGetDeviceIDs) X(clCreateContext) X(clReleaseContext) X(clCreateProgramWithSource) X(clBuildProgram)         \
	X(clReleaseProgram) X(clCreateKernel) X(clReleaseKernel) X(clSetKernelArg) X(clCreateCommandQueueWithProperties) \
	X(clReleaseCommandQueue) X(clCreateBuffer) X(clReleaseMemObject) X(clEnqueueNDRangeKernel) X(clFinish)          \
	X(clGetCommandQueueInfo) X(clGetEventProfilingInfo)                                                             \
	X(clGetDeviceInfo) X(clGetContextInfo) X(clGetKernelInfo) X(clGetMemObjectInfo) X(clGetImageInfo)               \
	X(clGetEventInfo) X(clGetProgramInfo) X(clGetProgramBuildInfo) X(clSetEventCallback) X(clReleaseEvent)          \
	X(clSetMemObjectDestructorCallback)

#define FUNCTION(name)                                                                                                  \
	static void *real_##name __attribute__((used));                                                                 \
	__attribute__((naked)) void name(void) { __asm__("jmp *real_" #name "(%rip)"); }
HANDED_ON(FUNCTION)

int clGetPlatformIDs(unsigned count, void **list, unsigned *there)
{
	void *loader = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);

#define FIND(name) real_##name = dlsym(loader, #name);
	HANDED_ON(FIND)
	return ((int (*)(unsigned, void **, unsigned *))dlsym(loader, "clGetPlatformIDs"))(count, list, there);
}
