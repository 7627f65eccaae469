/*
 * device.c - see device.h.
 *
 *   weights:  one buffer a matrix, written when it is first used
 *   a call:   in and out go up, one kernel, out comes back
 *
 * OpenCL is opened at run time, as engines do: the program runs without it too.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include "device.h"
#include <CL/cl.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MATRICES = 64 };

#define FUNCTIONS(X)                                                                                   \
	X(clGetPlatformIDs) X(clGetDeviceIDs) X(clGetDeviceInfo) X(clCreateContext) X(clCreateCommandQueue) \
	X(clCreateProgramWithSource) X(clBuildProgram) X(clCreateKernel) X(clSetKernelArg) X(clCreateBuffer) \
	X(clEnqueueWriteBuffer) X(clEnqueueReadBuffer) X(clEnqueueNDRangeKernel) X(clFinish)           \
	X(clReleaseMemObject) X(clReleaseKernel) X(clReleaseProgram) X(clReleaseCommandQueue) X(clReleaseContext)

static struct {
#define X(name) __typeof__(&name) name;
	FUNCTIONS(X)
#undef X
} cl;

/* Eight columns an item. */
#define MULTIPLY(name)                                                                                 \
	"__kernel void " name "(__global float8 *out, __global const float *in, __global const float8 *w, int k, int n)\n" \
	"{\n"                                                                                          \
	"  int row = get_global_id(1), column = get_global_id(0);\n"                                   \
	"  float8 sum = out[row * n + column];\n"                                                      \
	"  for (int i = 0; i < k; i++) sum += in[row * k + i] * w[i * n + column];\n"                  \
	"  out[row * n + column] = sum;\n"                                                             \
	"}\n"

static const char *const source =
	MULTIPLY("attention_query") MULTIPLY("attention_key") MULTIPLY("attention_value") MULTIPLY("feed_forward_up") MULTIPLY("feed_forward_down");

static struct kernel { const char *what, *name; cl_kernel kernel; } kernels[] = {
	{ "query", "attention_query", NULL }, { "key", "attention_key", NULL }, { "value", "attention_value", NULL },
	{ "up", "feed_forward_up", NULL }, { "down", "feed_forward_down", NULL },
};

static struct { const float *host; cl_mem device; } matrix[MATRICES];
static cl_context context;
static cl_command_queue queue;
static cl_program program;

static void must(cl_int error, const char *what)
{
	if (!error)
		return;
	dprintf(2, "model: %s: OpenCL error %d\n", what, error);
	exit(1);
}

static bool find_functions(void)
{
	void *library = dlopen("libOpenCL.so.1", RTLD_NOW);

#define X(name) if (!library || !(*(void **)&cl.name = dlsym(library, #name))) return false;
	FUNCTIONS(X)
#undef X
	return true;
}

bool device_start(char *name, size_t size)
{
	cl_platform_id platform;
	cl_device_id device;
	cl_int error;

	if (!find_functions() || cl.clGetPlatformIDs(1, &platform, NULL) || cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL))
		return false;
	cl.clGetDeviceInfo(device, CL_DEVICE_NAME, size, name, NULL);
	context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &error);
	must(error, "context");
	queue = cl.clCreateCommandQueue(context, device, 0, &error);
	must(error, "queue");
	program = cl.clCreateProgramWithSource(context, 1, (const char **)&source, NULL, &error);
	must(error, "program");
	must(cl.clBuildProgram(program, 1, &device, "", NULL, NULL), "build");
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
		kernels[i].kernel = cl.clCreateKernel(program, kernels[i].name, &error);
		must(error, kernels[i].name);
	}
	return true;
}

static cl_mem buffer_with(const float *host, size_t floats)
{
	cl_int error;
	cl_mem m = cl.clCreateBuffer(context, CL_MEM_READ_WRITE, floats * sizeof *host, NULL, &error);

	must(error, "buffer");
	must(cl.clEnqueueWriteBuffer(queue, m, CL_FALSE, 0, floats * sizeof *host, host, 0, NULL, NULL), "write");
	return m;
}

static cl_mem matrix_on_device(const float *w, size_t floats)
{
	int i = 0;

	while (matrix[i].host && matrix[i].host != w)
		if (++i == MATRICES)
			exit(1);
	if (!matrix[i].host) {
		matrix[i].host = w;
		matrix[i].device = buffer_with(w, floats);
	}
	return matrix[i].device;
}

void device_multiply(const char *what, float *out, const float *in, const float *w, size_t rows, size_t k, size_t n)
{
	cl_mem buffer[3] = { buffer_with(out, rows * n), buffer_with(in, rows * k), matrix_on_device(w, k * n) };
	cl_int size[2] = { (cl_int)k, (cl_int)n / 8 };
	size_t global[2] = { n / 8, rows }, local[2] = { 32, 1 };
	struct kernel *kernel = kernels;

	while (strcmp(kernel->what, what))
		kernel++;
	for (cl_uint i = 0; i < 3; i++)
		must(cl.clSetKernelArg(kernel->kernel, i, sizeof *buffer, &buffer[i]), "argument");
	for (cl_uint i = 0; i < 2; i++)
		must(cl.clSetKernelArg(kernel->kernel, 3 + i, sizeof *size, &size[i]), "argument");
	must(cl.clEnqueueNDRangeKernel(queue, kernel->kernel, 2, NULL, global, local, 0, NULL, NULL), kernel->name);
	must(cl.clEnqueueReadBuffer(queue, buffer[0], CL_TRUE, 0, rows * n * sizeof *out, out, 0, NULL, NULL), "read");
	cl.clReleaseMemObject(buffer[0]);
	cl.clReleaseMemObject(buffer[1]);
}

void device_stop(void)
{
	cl.clFinish(queue);
	for (int i = 0; i < MATRICES && matrix[i].host; i++)
		cl.clReleaseMemObject(matrix[i].device);
	for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
		cl.clReleaseKernel(kernels[i].kernel);
	cl.clReleaseProgram(program);
	cl.clReleaseCommandQueue(queue);
	cl.clReleaseContext(context);
}
