// cc: -lOpenCL
/*
 * opencl_wrong.c - wrong calls: each must fail as it does alone, and none may change what is true of memory. Says what each returned, and
 * how much memory is live in the end.
 */
#include "opencl.h"

static const size_t one = 1, zero3[3] = { 0, 0, 0 }, many[3] = { 1 << 20, 1, 1 };

#define SAY(call) say("%d %s\n", call, #call)
#define MADE(call)                                                                                     \
	do {                                                                                           \
		cl_int error = 1;                                                                      \
		void *made = (void *)(call);                                                           \
		say("%d %d %s\n", error, made != NULL, #call);                                         \
	} while (0)

static void on_queue(cl_command_queue q, cl_kernel k, cl_mem m, cl_mem image)
{
	char bytes[64];

	SAY(clEnqueueNDRangeKernel(NULL, k, 1, NULL, &one, NULL, 0, NULL, NULL));
	SAY(clEnqueueNDRangeKernel(q, k, 0, NULL, &one, NULL, 0, NULL, NULL));
	SAY(clEnqueueNDRangeKernel(q, k, 9, NULL, &one, NULL, 0, NULL, NULL));
	SAY(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, many, 0, NULL, NULL));
	SAY(clEnqueueNDRangeKernel(q, k, 1, NULL, &one, NULL, 1, NULL, NULL));
	SAY(clEnqueueReadBuffer(q, NULL, CL_TRUE, 0, 4, bytes, 0, NULL, NULL));
	SAY(clEnqueueReadBuffer(q, m, CL_TRUE, 0, 1 << 20, bytes, 0, NULL, NULL));
	SAY(clEnqueueReadBuffer(q, m, CL_TRUE, 0, 4, NULL, 0, NULL, NULL));
	SAY(clEnqueueWriteBuffer(NULL, m, CL_TRUE, 0, 4, bytes, 0, NULL, NULL));
	SAY(clEnqueueCopyBuffer(q, m, m, 0, 2, 64, 0, NULL, NULL));
	SAY(clEnqueueFillBuffer(q, m, bytes, 3, 0, 64, 0, NULL, NULL));
	SAY(clEnqueueReadImage(q, NULL, CL_TRUE, zero3, many, 0, 0, bytes, 0, NULL, NULL));
	SAY(clEnqueueReadImage(q, image, CL_TRUE, zero3, many, 0, 0, bytes, 0, NULL, NULL));
	SAY(clEnqueueUnmapMemObject(q, m, bytes, 0, NULL, NULL));
	SAY(clEnqueueMigrateMemObjects(q, 1, NULL, 0, 0, NULL, NULL));
	SAY(clEnqueueMarkerWithWaitList(q, 1, NULL, NULL));
	SAY(clFinish(NULL));
	SAY(clFlush(NULL));
	SAY(clWaitForEvents(0, NULL));
	MADE(clEnqueueMapBuffer(q, m, CL_TRUE, CL_MAP_READ, 0, 1 << 20, 0, NULL, NULL, &error));
	MADE(clEnqueueMapBuffer(NULL, m, CL_TRUE, CL_MAP_READ, 0, 16, 0, NULL, NULL, &error));
}

static void on_objects(struct cl *c, cl_mem m)
{
	cl_queue_properties odd[] = { CL_QUEUE_PROPERTIES, 1u << 20, 0 };
	cl_buffer_region outside = { 0, 1 << 20 };
	cl_image_format format = { CL_RGBA, CL_UNORM_INT8 };

	MADE(clCreateBuffer(c->context, CL_MEM_READ_WRITE, 0, NULL, &error));
	MADE(clCreateBuffer(NULL, CL_MEM_READ_WRITE, 64, NULL, &error));
	MADE(clCreateBuffer(c->context, CL_MEM_USE_HOST_PTR, 64, NULL, &error));
	MADE(clCreateSubBuffer(m, 0, CL_BUFFER_CREATE_TYPE_REGION, &outside, &error));
	MADE(clCreateSubBuffer(NULL, 0, CL_BUFFER_CREATE_TYPE_REGION, &outside, &error));
	MADE(clCreateImage(c->context, CL_MEM_READ_WRITE, &format, NULL, NULL, &error));
	MADE(clCreateCommandQueueWithProperties(c->context, NULL, NULL, &error));
	MADE(clCreateCommandQueueWithProperties(c->context, c->device, odd, &error));
	MADE(clCreateCommandQueue(NULL, c->device, 0, &error));
	MADE(clCreateKernel(c->program, "no such kernel", &error));
	MADE(clCreateKernel(NULL, "scale", &error));
	SAY(clReleaseMemObject(NULL));
	SAY(clReleaseCommandQueue(NULL));
	SAY(clBuildProgram(NULL, 0, NULL, NULL, NULL, NULL));
	SAY(clGetEventProfilingInfo(NULL, CL_PROFILING_COMMAND_START, 0, NULL, NULL));
	SAY(clGetCommandQueueInfo(NULL, CL_QUEUE_PROPERTIES, 0, NULL, NULL));
}

/* What could not be freed is there until it is. */
static void shared(struct cl *c, cl_command_queue q)
{
	void *p[2] = { clSVMAlloc(c->context, CL_MEM_READ_WRITE, 65536, 0), clSVMAlloc(c->context, CL_MEM_READ_WRITE, 4096, 0) };

	SAY(clEnqueueSVMFree(q, 2, NULL, NULL, NULL, 0, NULL, NULL));
	SAY(clEnqueueSVMFree(q, 2, p, NULL, NULL, 1, NULL, NULL));
	SAY(clEnqueueSVMFree(NULL, 2, p, NULL, NULL, 0, NULL, NULL));
	clSVMFree(c->context, p[0]);
	SAY(clEnqueueSVMFree(q, 1, &p[1], NULL, NULL, 0, NULL, NULL));
	clSVMFree(c->context, NULL);
	MUST(clFinish(q));
}

int main(void)
{
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, 0);
	cl_kernel k = cl_kernel_of(&c, "scale");
	cl_mem m = cl_buffer(&c, 4096, CL_MEM_READ_WRITE, NULL);
	cl_image_format format = { CL_RGBA, CL_UNORM_INT8 };
	cl_image_desc about = { .image_type = CL_MEM_OBJECT_IMAGE2D, .image_width = 4, .image_height = 4 };
	cl_mem image = clCreateImage(c.context, CL_MEM_READ_WRITE, &format, &about, NULL, NULL);

	on_queue(q, k, m, image);
	on_objects(&c, m);
	shared(&c, q);
	clReleaseMemObject(image);
	clReleaseMemObject(m);
	clReleaseKernel(k);
	clReleaseCommandQueue(q);
	expect("devices.0.live_at_exit_bytes", 0);
	expect("devices.0.allocs", 4);
	expect("devices.0.frees", 4);
	expect("devices.0.peak_bytes", 4096 + 64 + 65536 + 4096);
	cl_stop(&c);
	return 0;
}
