/* gpu_driver_user.c - a program for CUDA's driver API, as Triton's launchers are; the library's books say what happened. */
#include "gpu_driver.h"

#include <stdio.h>

#define LIST(what) what what what what  /* of parameters of a template, as kernels have them */

int main(void)
{
	struct cu_launch_config config = { 9, 8, 7, 6, 5, 4, 1500, NULL, NULL, 0 };
	void *gemm, *norm, *add, *each, *none = NULL, *stream, *pinned;
	unsigned long weights, lost;
	static char host[8192];

#ifdef BY_GETTER
	cu_find();
#endif
	printf("no function %d\n", cuModuleGetFunction(&none, NULL, "?"));
	cuModuleGetFunction(&gemm, NULL, "_ZN6triton4gemmILi64EEEvPf");
	cuModuleGetFunction(&norm, NULL, "layer_norm");
	cuModuleGetFunction(&add, NULL, "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EEEEviT0_T1_");
	cuModuleGetFunction(&each, NULL, "_ZN2at6native18elementwise_kernelI" LIST(LIST(LIST("Li1000E"))) "EEvPf");
	cuStreamCreate(&stream, 1);
	config.stream = stream;
	cuMemAlloc_v2(&weights, 4096);
	cuMemAlloc_v2(&lost, 1000000);
	cuMemAllocHost_v2(&pinned, 65536);
	cuMemcpyHtoD_v2(weights, host, 4096);
	cuMemcpy(lost, weights, 3000);
	for (int i = 0; i < 5; i++) {
		cuLaunchKernel(gemm, 3, 2, 1, 32, 4, 2, 2000, stream, NULL, NULL);
		cuLaunchKernelEx(&config, norm, NULL, NULL);
		cuMemsetD32Async(weights, 5, 1000, stream);
		cuMemcpyDtoHAsync_v2(pinned, weights, 4000, stream);
		cuMemcpyAsync(lost, weights, 2000, stream);
		cuStreamSynchronize(stream);
	}
	cuLaunchKernel(norm, 1, 1, 1, 1, 1, 1, 100, NULL, NULL, NULL);
	cuLaunchKernel(add, 1, 1, 1, 1, 1, 1, 100, NULL, NULL, NULL);
	cuLaunchKernel(each, 1, 1, 1, 1, 1, 1, 100, NULL, NULL, NULL);
	printf("too large %d\n", cuLaunchKernel(norm, 1, 1, 1, 64, 64, 1, 100, NULL, NULL, NULL));
	cuCtxSynchronize();
	printf("read %d\n", ((char *)pinned)[3999]);
	cuMemFree_v2(weights);
	cuMemFreeHost(pinned);
	return gpu_books();
}
