/*
 * cmt.h - as much of cmt, a C layer over Metal, as the stand-in (cmt.c) has: names and arguments are those of the library.
 *
 * In the stand-in a library's source is a list of kernels, "relu 2000 softmax 500": their names, and the microseconds they take.
 */
#ifndef CMT_H
#define CMT_H

typedef unsigned long NsUInteger;
typedef void MtObject;

typedef struct {
	NsUInteger width, height, depth;
} MtSize;

typedef struct {
	NsUInteger location, length;
} NsRange;

enum { MtResourceStorageModeShared = 0, MtResourceStorageModePrivate = 32 };
enum { MtCommandBufferStatusCommitted = 2, MtCommandBufferStatusCompleted = 4 };

MtObject *mtCreateSystemDefaultDevice(void);
NsUInteger mtDeviceCurrentAllocatedSize(MtObject *device);
MtObject *mtRetain(MtObject *object);
void mtRelease(MtObject *object);

MtObject *mtDeviceNewBufferWithLength(MtObject *device, NsUInteger length, unsigned options);
MtObject *mtDeviceNewBufferWithBytes(MtObject *device, const void *bytes, NsUInteger length, unsigned options);
MtObject *mtNewHeapDescriptor(void);
void mtHeapDescriptorSizeSet(MtObject *descriptor, NsUInteger size);
MtObject *mtDeviceNewHeapWithDescriptor(MtObject *device, MtObject *descriptor);
MtObject *mtHeapNewBufferWithLength(MtObject *heap, NsUInteger length, unsigned options);
void *mtBufferContents(MtObject *buffer);
void mtResourceLabelSet(MtObject *resource, const char *label);
void mtHeapLabelSet(MtObject *heap, const char *label);

MtObject *mtNewLibraryWithSource(MtObject *device, char *source, MtObject *options, MtObject **error);
MtObject *mtNewFunctionWithName(MtObject *library, const char *name);
MtObject *mtNewComputePipelineStateWithFunction(MtObject *device, MtObject *function, MtObject **error);

MtObject *mtNewCommandQueue(MtObject *device);
void mtCommandQueueLabelSet(MtObject *queue, const char *label);
MtObject *mtNewCommandBuffer(MtObject *queue);
void mtCommandBufferCommit(MtObject *commands);
void mtCommandBufferWaitUntilScheduled(MtObject *commands);
void mtCommandBufferWaitUntilCompleted(MtObject *commands);
int mtCommandBufferStatus(MtObject *commands);
double mtCommandBufferGPUStartTime(MtObject *commands);
double mtCommandBufferGPUEndTime(MtObject *commands);

MtObject *mtNewComputeCommandEncoder(MtObject *commands);
void mtComputeCommandEncoderSetComputePipelineState(MtObject *encoder, MtObject *pipeline);
void mtComputeCommandEncoderDispatchThreadgroups_threadsPerThreadgroup(MtObject *encoder, MtSize groups, MtSize threads_of_a_group);
void mtComputeCommandEncoderDispatchThread_threadsPerThreadgroup(MtObject *encoder, MtSize threads, MtSize threads_of_a_group);
void mtComputeCommandEncoderEndEncoding(MtObject *encoder);
MtObject *mtNewBlitCommandEncoder(MtObject *commands);
void mtBlitCommandEncoderCopyFromBufferToBuffer(MtObject *encoder, MtObject *from, NsUInteger from_offset, MtObject *to, NsUInteger to_offset,
						NsUInteger size);
void mtBlitCommandEncoderFillBuffer(MtObject *encoder, MtObject *buffer, NsRange range, unsigned char value);
void mtCommandEncoderEndEncoding(MtObject *encoder);

void standin_books(void);       /* prints what really ran, and when by CLOCK_MONOTONIC: not of cmt */

#endif
