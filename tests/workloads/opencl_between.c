// cc: -shared -fPIC -ldl
/*
 * opencl_between.c - a library that defines some of OpenCL's functions itself and hands them on to a loader that it opens.
 */
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>

static int enqueued;

__attribute__((destructor)) static void say(void) { dprintf(1, "between: %d kernels\n", enqueued); }

static void *next(const char *name)
{
	static void *library;

	if (!library)
		library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
	return dlsym(library, name);
}

#define NEXT(name) ((__typeof__(&name))next(#name))

cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset, const size_t *global, const size_t *local,
			      cl_uint n, const cl_event *list, cl_event *event)
{
	enqueued++;
	return NEXT(clEnqueueNDRangeKernel)(q, k, dim, offset, global, local, n, list, event);
}

cl_int clFinish(cl_command_queue q)
{
	return NEXT(clFinish)(q);
}

cl_kernel clCreateKernel(cl_program p, const char *name, cl_int *error)
{
	return NEXT(clCreateKernel)(p, name, error);
}
