// cc: -shared -fPIC -ldl
/*
 * opencl_before.c - a library that is preloaded, counts kernels and hands them on to whoever is next, as such tools do.
 */
#define _GNU_SOURCE
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>

static int enqueued;

__attribute__((destructor)) static void say(void) { dprintf(1, "before: %d kernels\n", enqueued); }

cl_int clEnqueueNDRangeKernel(cl_command_queue q, cl_kernel k, cl_uint dim, const size_t *offset, const size_t *global, const size_t *local,
			      cl_uint n, const cl_event *list, cl_event *event)
{
	__typeof__(&clEnqueueNDRangeKernel) next = (__typeof__(next))dlsym(RTLD_NEXT, "clEnqueueNDRangeKernel");

	enqueued++;
	return next(q, k, dim, offset, global, local, n, list, event);
}
