/*
 * opencl_names.h - the names of OpenCL that we deal with; a list that C and the assembler both read.
 *
 * To add an entry point: a name here, and a wrapper w_NAME in an opencl_*.c file.
 */
#ifndef OPENCL_NAMES_H
#define OPENCL_NAMES_H

#define OPENCL_LOADERS 8                /* doors that each entry point has; see opencl.h */
#define OPENCL_DOOR_BYTES 32

/* Entry points that have a wrapper ... */
#define OPENCL_WRAPPED(X)                                                                              \
	X(clCreateContext) X(clCreateContextFromType) X(clReleaseContext)                              \
	X(clCreateCommandQueue) X(clCreateCommandQueueWithProperties) X(clGetCommandQueueInfo)         \
	X(clReleaseCommandQueue)                                                                       \
	X(clGetEventProfilingInfo) X(clFinish) X(clFlush) X(clWaitForEvents)                           \
	X(clCreateUserEvent) X(clSetUserEventStatus)                                                   \
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
	X(clReleaseMemObject) X(clSVMAlloc) X(clSVMFree)                                               \
	X(clCreateFromGLBuffer) X(clCreateFromGLTexture) X(clCreateFromGLRenderbuffer)                 \
	X(clEnqueueAcquireGLObjects) X(clEnqueueReleaseGLObjects)                                      \
	X(clBuildProgram) X(clCompileProgram) X(clLinkProgram)                                         \
	X(clCreateKernel) X(clCreateKernelsInProgram) X(clCloneKernel)                                 \
	X(clSetEventCallback) X(clSetMemObjectDestructorCallback)                                      \
	X(clSetContextDestructorCallback) X(clSetProgramReleaseCallback)                               \
	X(clGetExtensionFunctionAddress) X(clGetExtensionFunctionAddressForPlatform)

/* ... those that only clGetExtensionFunctionAddress hands out ... */
#define OPENCL_EXTENSIONS(X)                                                                           \
	X(clCreateCommandQueueWithPropertiesKHR)                                                       \
	X(clHostMemAllocINTEL) X(clDeviceMemAllocINTEL) X(clSharedMemAllocINTEL)                       \
	X(clMemFreeINTEL) X(clMemBlockingFreeINTEL)                                                    \
	X(clEnqueueMemcpyINTEL) X(clEnqueueMemFillINTEL) X(clEnqueueMemsetINTEL) X(clEnqueueMigrateMemINTEL) X(clEnqueueMemAdviseINTEL) \
	X(clCreateBufferWithPropertiesINTEL) X(clImportMemoryARM) X(clEnqueueMigrateMemObjectEXT)      \
	X(clEnqueueAcquireExternalMemObjectsKHR) X(clEnqueueReleaseExternalMemObjectsKHR)              \
	X(clEnqueueWaitSemaphoresKHR) X(clEnqueueSignalSemaphoresKHR)                                  \
	X(clCreateCommandBufferKHR) X(clEnqueueCommandBufferKHR) X(clCommandNDRangeKernelKHR)          \
	X(clCommandCopyBufferKHR) X(clCommandCopyBufferRectKHR) X(clCommandFillBufferKHR)              \
	X(clCommandCopyImageKHR) X(clCommandCopyImageToBufferKHR) X(clCommandCopyBufferToImageKHR) X(clCommandFillImageKHR) \
	X(clCommandBarrierWithWaitListKHR)

/* ... and what the wrappers call: of each driver ... */
#define OPENCL_USED(X)                                                                                 \
	X(clGetDeviceInfo) X(clGetContextInfo) X(clGetKernelInfo) X(clGetMemObjectInfo) X(clGetImageInfo) \
	X(clGetEventInfo) X(clGetProgramInfo) X(clGetProgramBuildInfo) X(clReleaseEvent)

/* ... or of those that have it. */
#define OPENCL_USED_IF_THERE(X) X(clGetDeviceAndHostTimer)

#endif
