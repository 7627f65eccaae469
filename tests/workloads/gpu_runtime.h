/*
 * gpu_runtime.h - the part of CUDA's run-time API that gpu_runtime.c stands in for, and with -DHIP the same of HIP's, which mirrors it.
 *
 * Types and the order of arguments are those of the public headers. A program with -DBY_DLSYM finds the functions by dlsym. With
 * -DPER_THREAD they have the names that programs call whose threads have a default stream each.
 */
#ifndef GPU_RUNTIME_H
#define GPU_RUNTIME_H

#include <stddef.h>

#ifdef HIP
#define GPU(name) hip##name
#define GPU_HIDDEN(name) __hip##name
#else
#define GPU(name) cuda##name
#define GPU_HIDDEN(name) __cuda##name
#endif

#ifdef PER_THREAD
#define cudaMemcpy cudaMemcpy_ptds
#define cudaMemcpy2D cudaMemcpy2D_ptds
#define cudaMemset cudaMemset_ptds
#define cudaMallocAsync cudaMallocAsync_ptsz
#define cudaFreeAsync cudaFreeAsync_ptsz
#define cudaMemcpyAsync cudaMemcpyAsync_ptsz
#define cudaMemsetAsync cudaMemsetAsync_ptsz
#define cudaLaunchKernel cudaLaunchKernel_ptsz
#define cudaLaunchKernelExC cudaLaunchKernelExC_ptsz
#define cudaStreamSynchronize cudaStreamSynchronize_ptsz
#define cudaStreamQuery cudaStreamQuery_ptsz
#define cudaStreamBeginCapture cudaStreamBeginCapture_ptsz
#define cudaStreamEndCapture cudaStreamEndCapture_ptsz
#define cudaGraphLaunch cudaGraphLaunch_ptsz
#define cudaEventRecord cudaEventRecord_ptsz
#define hipMemcpy hipMemcpy_spt
#define hipMemcpy2D hipMemcpy2D_spt
#define hipMemset hipMemset_spt
#define hipMemcpyAsync hipMemcpyAsync_spt
#define hipMemsetAsync hipMemsetAsync_spt
#define hipLaunchKernel hipLaunchKernel_spt
#define hipStreamSynchronize hipStreamSynchronize_spt
#define hipStreamQuery hipStreamQuery_spt
#define hipStreamBeginCapture hipStreamBeginCapture_spt
#define hipStreamEndCapture hipStreamEndCapture_spt
#define hipGraphLaunch hipGraphLaunch_spt
#define hipEventRecord hipEventRecord_spt
#endif

enum { GPU_H2H, GPU_H2D, GPU_D2H, GPU_D2D };
enum { GPU_NO_MEMORY = 2, GPU_BAD_SIZES = 9, GPU_NOT_READY = 600, GPU_THREADS_MAX = 1024 };

struct gpu_dim3 {
	unsigned x, y, z;
};

struct gpu_launch_config {
	struct gpu_dim3 grid, block;
	size_t shared;
	void *stream;
	void *attributes;
	unsigned attribute_count;
};

#ifdef HIP
#define GPU_OWN_FUNCTIONS(F) \
	F(GPU(HostMalloc), (void **to, size_t bytes, unsigned flags)) F(GPU(HostFree), (void *at)) \
	F(roctxNameHipStream, (const char *name, const void *stream))
#else
#define GPU_OWN_FUNCTIONS(F) \
	F(GPU(MallocHost), (void **to, size_t bytes)) F(GPU(FreeHost), (void *at)) \
	F(GPU(LaunchKernelExC), (const struct gpu_launch_config *config, const void *function, void **args)) \
	F(__cudaGetKernel, (void **kernel, const void *function)) \
	F(nvtxNameCudaStreamA, (void *stream, const char *name))
#endif

#define GPU_FUNCTIONS(F) \
	F(GPU(Malloc), (void **to, size_t bytes)) F(GPU(MallocAsync), (void **to, size_t bytes, void *stream)) \
	F(GPU(MallocPitch), (void **to, size_t *pitch, size_t width, size_t height)) \
	F(GPU(Free), (void *at)) F(GPU(FreeAsync), (void *at, void *stream)) \
	F(GPU(Memcpy), (void *to, const void *from, size_t bytes, int kind)) \
	F(GPU(MemcpyAsync), (void *to, const void *from, size_t bytes, int kind, void *stream)) \
	F(GPU(Memcpy2D), (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind)) \
	F(GPU(Memset), (void *at, int value, size_t bytes)) F(GPU(MemsetAsync), (void *at, int value, size_t bytes, void *stream)) \
	F(GPU_HIDDEN(RegisterFunction), (void **module, const char *function, char *stub, const char *name, int limit, void *tid, void *bid, \
					 void *block, void *grid, int *wave)) \
	F(GPU(LaunchKernel), (const void *function, struct gpu_dim3 grid, struct gpu_dim3 block, void **args, size_t shared, void *stream)) \
	F(GPU(StreamCreate), (void **stream)) F(GPU(StreamDestroy), (void *stream)) F(GPU(StreamSynchronize), (void *stream)) \
	F(GPU(StreamQuery), (void *stream)) F(GPU(StreamBeginCapture), (void *stream, int mode)) \
	F(GPU(StreamEndCapture), (void *stream, void **graph)) F(GPU(GraphLaunch), (void *graph, void *stream)) \
	F(GPU(EventCreate), (void **event)) F(GPU(EventRecord), (void *event, void *stream)) F(GPU(EventSynchronize), (void *event)) \
	F(GPU(EventQuery), (void *event)) F(GPU(DeviceSynchronize), (void)) F(gpu_books, (void)) \
	GPU_OWN_FUNCTIONS(F)

#ifdef BY_DLSYM
#include <dlfcn.h>
#define F(name, arguments) static int (*name) arguments;
#else
#define F(name, arguments) int name arguments;
#endif
GPU_FUNCTIONS(F)
#undef F

/* How libnccl's stand-in puts its work onto streams. */
int gpu_collective(const char *name, size_t bytes, void *stream);

#ifdef BY_DLSYM
#define TEXT_OF(name) #name

static void gpu_find(const char *library)
{
	void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);

#define F(name, arguments) name = (__typeof__(name))dlsym(handle, TEXT_OF(name));
	GPU_FUNCTIONS(F)
#undef F
}
#endif

#endif
