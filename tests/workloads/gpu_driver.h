/*
 * gpu_driver.h - the part of CUDA's driver API that gpu_driver.c stands in for; types and order of arguments are those of the public header.
 *
 * A program with -DBY_GETTER="libcuda.so.1" asks cuGetProcAddress for each, as the run-time does: by the name without its version.
 */
#ifndef GPU_DRIVER_H
#define GPU_DRIVER_H

#include <stddef.h>

#ifdef PER_THREAD                       /* as programs call them whose threads have a default stream each */
#define cuLaunchKernel cuLaunchKernel_ptsz
#define cuLaunchKernelEx cuLaunchKernelEx_ptsz
#define cuMemcpyHtoD_v2 cuMemcpyHtoD_v2_ptds
#define cuMemcpyDtoHAsync_v2 cuMemcpyDtoHAsync_v2_ptsz
#define cuMemcpy cuMemcpy_ptds
#define cuMemcpyAsync cuMemcpyAsync_ptsz
#define cuMemsetD32Async cuMemsetD32Async_ptsz
#define cuStreamSynchronize cuStreamSynchronize_ptsz
#endif

struct cu_launch_config {
	unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
	void *stream, *attributes;
	unsigned attribute_count;
};

/* function, what cuGetProcAddress knows it by, arguments */
#define CU_FUNCTIONS(F) \
	F(cuModuleGetFunction, cuModuleGetFunction, (void **function, void *module, const char *name)) \
	F(cuLaunchKernel, cuLaunchKernel, (void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, \
					   void *stream, void **args, void **extra)) \
	F(cuLaunchKernelEx, cuLaunchKernelEx, (const struct cu_launch_config *config, void *function, void **args, void **extra)) \
	F(cuMemAlloc_v2, cuMemAlloc, (unsigned long *to, size_t bytes)) F(cuMemFree_v2, cuMemFree, (unsigned long at)) \
	F(cuMemAllocHost_v2, cuMemAllocHost, (void **to, size_t bytes)) F(cuMemFreeHost, cuMemFreeHost, (void *at)) \
	F(cuMemcpyHtoD_v2, cuMemcpyHtoD, (unsigned long to, const void *from, size_t bytes)) \
	F(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync, (void *to, unsigned long from, size_t bytes, void *stream)) \
	F(cuMemcpy, cuMemcpy, (unsigned long to, unsigned long from, size_t bytes)) \
	F(cuMemcpyAsync, cuMemcpyAsync, (unsigned long to, unsigned long from, size_t bytes, void *stream)) \
	F(cuMemsetD32Async, cuMemsetD32Async, (unsigned long at, unsigned value, size_t count, void *stream)) \
	F(cuStreamCreate, cuStreamCreate, (void **stream, unsigned flags)) F(cuStreamSynchronize, cuStreamSynchronize, (void *stream)) \
	F(cuCtxSynchronize, cuCtxSynchronize, (void)) F(gpu_books, gpu_books, (void))

int cuGetProcAddress_v2(const char *symbol, void **function, int version, unsigned long flags, int *status);

#ifdef BY_GETTER
#include <dlfcn.h>
#define F(name, asked, arguments) static int (*name) arguments;
#else
#define F(name, asked, arguments) int name arguments;
#endif
CU_FUNCTIONS(F)
#undef F

#ifdef BY_GETTER
static void cu_find(void)
{
	__typeof__(&cuGetProcAddress_v2) get = (__typeof__(get))dlsym(dlopen(BY_GETTER, RTLD_NOW), "cuGetProcAddress_v2");

#define F(name, asked, arguments) get(#asked, (void **)&name, 12000, 0, NULL);
	CU_FUNCTIONS(F)
#undef F
}
#endif

#endif
