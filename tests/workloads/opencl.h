/*
 * opencl.h - what the OpenCL workloads begin with: a context, and a program of small kernels.
 */
#ifndef WORKLOAD_OPENCL_H
#define WORKLOAD_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include "expect.h"
#include <CL/cl.h>

#define MUST(call)                                                                                     \
	do {                                                                                           \
		cl_int error_ = (call);                                                                \
		if (error_) {                                                                          \
			say("%s: %d\n", #call, error_);                                                \
			_exit(1);                                                                      \
		}                                                                                      \
	} while (0)

static const char *const kernels =
	"__kernel void scale(__global float *a, float by) { a[get_global_id(0)] *= by; }\n"
	"__kernel void spin(__global float *a, int rounds) {\n"
	"  float x = a[get_global_id(0)];\n"
	"  for (int i = 0; i < rounds; i++) x = x * 0.999f + 0.5f;\n"
	"  a[get_global_id(0)] = x;\n"
	"}\n";

struct cl {
	cl_platform_id platform;
	cl_device_id device;
	cl_context context;
	cl_program program;
};

static inline struct cl cl_start(void)
{
	struct cl c;
	cl_int error;
	const char *source = kernels;

	MUST(clGetPlatformIDs(1, &c.platform, NULL));
	MUST(clGetDeviceIDs(c.platform, CL_DEVICE_TYPE_ALL, 1, &c.device, NULL));
	c.context = clCreateContext(NULL, 1, &c.device, NULL, NULL, &error);
	MUST(error);
	c.program = clCreateProgramWithSource(c.context, 1, &source, NULL, &error);
	MUST(error);
	MUST(clBuildProgram(c.program, 1, &c.device, "", NULL, NULL));
	return c;
}

static inline cl_command_queue cl_queue(const struct cl *c, cl_command_queue_properties p)
{
	cl_queue_properties list[] = { CL_QUEUE_PROPERTIES, p, 0 };
	cl_int error;
	cl_command_queue q = clCreateCommandQueueWithProperties(c->context, c->device, p ? list : NULL, &error);

	MUST(error);
	return q;
}

static inline cl_kernel cl_kernel_of(const struct cl *c, const char *name)
{
	cl_int error;
	cl_kernel k = clCreateKernel(c->program, name, &error);

	MUST(error);
	return k;
}

static inline cl_mem cl_buffer(const struct cl *c, size_t bytes, cl_mem_flags flags, void *host)
{
	cl_int error;
	cl_mem m = clCreateBuffer(c->context, flags, bytes, host, &error);

	MUST(error);
	return m;
}

static inline void cl_stop(struct cl *c)
{
	clReleaseProgram(c->program);
	clReleaseContext(c->context);
}

#endif
