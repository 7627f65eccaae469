/*
 * opencl.h - what the OpenCL wrappers share.
 *
 *   api_opencl.c     the table of entry points, and how the real functions are found
 *   opencl_queue.c   devices, queues (profiling is switched on, and hidden from the program), waits
 *   opencl_work.c    everything that is enqueued, and its end
 *   opencl_memory.c  buffers, images, SVM
 *   opencl_program.c builds, kernels and their names
 *
 * A wrapper is called w_NAME. The real function is cl.NAME.
 */
#ifndef OPENCL_H
#define OPENCL_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_0_APIS
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#define CL_USE_DEPRECATED_OPENCL_2_0_APIS
#define CL_USE_DEPRECATED_OPENCL_2_1_APIS
#define CL_USE_DEPRECATED_OPENCL_2_2_APIS
#include "device.h"
#include "handles.h"
#include <CL/cl.h>
#include <CL/cl_ext.h>

/* Entry points that have a wrapper ... */
#define OPENCL_WRAPPED(X)                                                                              \
	X(clCreateCommandQueue) X(clCreateCommandQueueWithProperties) X(clGetCommandQueueInfo)         \
	X(clGetEventProfilingInfo) X(clFinish) X(clFlush) X(clWaitForEvents)                           \
	X(clEnqueueNDRangeKernel) X(clEnqueueTask) X(clEnqueueNativeKernel)                            \
	X(clEnqueueReadBuffer) X(clEnqueueWriteBuffer) X(clEnqueueCopyBuffer) X(clEnqueueFillBuffer)   \
	X(clEnqueueReadBufferRect) X(clEnqueueWriteBufferRect) X(clEnqueueCopyBufferRect)              \
	X(clEnqueueReadImage) X(clEnqueueWriteImage) X(clEnqueueCopyImage) X(clEnqueueFillImage)       \
	X(clEnqueueCopyImageToBuffer) X(clEnqueueCopyBufferToImage)                                    \
	X(clEnqueueMapBuffer) X(clEnqueueMapImage) X(clEnqueueUnmapMemObject)                          \
	X(clEnqueueMigrateMemObjects) X(clEnqueueMarkerWithWaitList) X(clEnqueueBarrierWithWaitList)   \
	X(clEnqueueMarker) X(clEnqueueBarrier) X(clEnqueueWaitForEvents)                               \
	X(clEnqueueSVMFree) X(clEnqueueSVMMemcpy) X(clEnqueueSVMMemFill) X(clEnqueueSVMMap)            \
	X(clEnqueueSVMUnmap) X(clEnqueueSVMMigrateMem)                                                 \
	X(clCreateBuffer) X(clCreateBufferWithProperties) X(clCreateSubBuffer) X(clCreateImage)        \
	X(clCreateImageWithProperties) X(clCreateImage2D) X(clCreateImage3D) X(clCreatePipe)           \
	X(clSVMAlloc) X(clSVMFree)                                                                     \
	X(clBuildProgram) X(clCompileProgram) X(clLinkProgram)                                         \
	X(clCreateKernel) X(clCreateKernelsInProgram) X(clCloneKernel)                                 \
	X(clGetExtensionFunctionAddress) X(clGetExtensionFunctionAddressForPlatform)

/* ... and those that the wrappers call. */
#define OPENCL_USED(X)                                                                                 \
	X(clGetDeviceInfo) X(clGetContextInfo) X(clGetKernelInfo) X(clGetMemObjectInfo) X(clGetImageInfo) \
	X(clGetEventInfo) X(clGetProgramBuildInfo) X(clSetEventCallback) X(clReleaseEvent)             \
	X(clSetMemObjectDestructorCallback) X(clGetDeviceAndHostTimer)

/* Extensions, which only clGetExtensionFunctionAddress hands out. */
#define OPENCL_EXTENSIONS(X)                                                                           \
	X(clCreateCommandBufferKHR) X(clEnqueueCommandBufferKHR) X(clHostMemAllocINTEL) X(clDeviceMemAllocINTEL)                   \
	X(clSharedMemAllocINTEL) X(clMemFreeINTEL) X(clMemBlockingFreeINTEL)                           \
	X(clEnqueueMemcpyINTEL) X(clEnqueueMemFillINTEL)

struct opencl {
#define X(name) __typeof__(&name) name;
	OPENCL_WRAPPED(X) OPENCL_USED(X)
#undef X
#define X(name) name##_fn name;
	OPENCL_EXTENSIONS(X)
#undef X
};

extern struct opencl cl;

#define X(name) __typeof__(name) w_##name;
OPENCL_WRAPPED(X)
#undef X
#define X(name) __typeof__(*(name##_fn)0) w_##name;
OPENCL_EXTENSIONS(X)
#undef X

struct cl_queue {
	u64 id;
	bool profiled;                  /* the program asked for it itself */
	bool forced;                    /* ... it did not, and we switched it on */
	u32 property_words;             /* of the program's own list, with its end; 0: it gave none */
	cl_queue_properties property[32];
};

struct cl_queue *opencl_queue(cl_command_queue q);              /* NULL: not to be recorded */
u64 opencl_device(cl_device_id d);                              /* its number; told when it is first seen */
u64 opencl_context_device(cl_context c);                        /* number of its first device */
u64 opencl_kernel_name(cl_kernel k);
void opencl_svm_gone(const void *p);                            /* it is about to be freed, or was */

#endif
