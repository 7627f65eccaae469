/*
 * gpu_rows.c - less common functions of CUDA, HIP and the libraries above them: each is called once, as its public header declares it,
 * and what that asked for is printed. With -DLIBRARY the functions, which do nothing.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct dim3 { unsigned x, y, z; };
typedef void *out, *ptr;
typedef uint64_t dev;

/* name, arguments */
#define FUNCTIONS(F) \
	F(nvtxNameCudaStreamA, (ptr, const char *)) F(roctxNameHipStream, (const char *, ptr)) F(cublasSetStream_v2, (ptr, ptr)) \
	F(cusparseSetStream, (ptr, ptr)) F(rocblas_set_stream, (ptr, ptr)) F(hipblasSetStream, (ptr, ptr)) F(miopenSetStream, (ptr, ptr)) \
	F(cudaMemcpyPeer, (ptr, int, ptr, int, size_t)) F(cudaMemcpyPeerAsync, (ptr, int, ptr, int, size_t, ptr)) \
	F(cudaMemcpyToSymbol, (ptr, ptr, size_t, size_t, int)) F(cudaMemcpyFromSymbol, (ptr, ptr, size_t, size_t, int)) \
	F(cudaMemcpyToSymbolAsync, (ptr, ptr, size_t, size_t, int, ptr)) F(cudaMemcpyFromSymbolAsync, (ptr, ptr, size_t, size_t, int, ptr)) \
	F(cudaMemcpy2DAsync, (ptr, size_t, ptr, size_t, size_t, size_t, int, ptr)) F(hipMemcpy2DAsync, (ptr, size_t, ptr, size_t, size_t, size_t, int, ptr)) \
	F(cuMemcpyDtoD_v2, (dev, dev, size_t)) F(cuMemcpyDtoH_v2, (ptr, dev, size_t)) F(cuMemcpyHtoDAsync_v2, (dev, ptr, size_t, ptr)) \
	F(cuMemcpyDtoDAsync_v2, (dev, dev, size_t, ptr)) F(cuMemsetD8_v2, (dev, unsigned char, size_t)) F(cuMemsetD8Async, (dev, unsigned char, size_t, ptr)) \
	F(cuMemsetD32_v2, (dev, unsigned, size_t)) F(hipMemcpyWithStream, (ptr, ptr, size_t, int, ptr)) F(hipMemcpyDtoD, (ptr, ptr, size_t)) \
	F(hipMemcpyHtoDAsync, (ptr, ptr, size_t, ptr)) F(hipMemcpyDtoDAsync, (ptr, ptr, size_t, ptr)) \
	F(hipMemcpyPeer, (ptr, int, ptr, int, size_t)) F(hipMemcpyPeerAsync, (ptr, int, ptr, int, size_t, ptr)) \
	F(hipMemcpyToSymbol, (ptr, ptr, size_t, size_t, int)) F(hipMemcpyFromSymbolAsync, (ptr, ptr, size_t, size_t, int, ptr)) \
	F(hipMemsetD8, (ptr, unsigned char, size_t)) F(hipMemsetD32, (ptr, int, size_t)) F(hipMemsetD32Async, (ptr, int, size_t, ptr)) \
	F(cudaLaunchCooperativeKernel, (ptr, struct dim3, struct dim3, ptr *, size_t, ptr)) \
	F(cuLaunchCooperativeKernel, (ptr, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, ptr, ptr *)) \
	F(hipExtLaunchKernel, (ptr, struct dim3, struct dim3, ptr *, size_t, ptr, ptr, ptr, int)) \
	F(hipModuleLaunchKernel, (ptr, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, ptr, ptr *, ptr *)) \
	F(hipExtModuleLaunchKernel, (ptr, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, size_t, ptr, ptr *, ptr *, ptr, ptr, unsigned)) \
	F(cublasDgemm_v2, (ptr, int, int, int, int, int, ptr, ptr, int, ptr, int, ptr, ptr, int)) \
	F(cublasCgemm_v2, (ptr, int, int, int, int, int, ptr, ptr, int, ptr, int, ptr, ptr, int)) \
	F(cublasGemmEx, (ptr, int, int, int, int, int, ptr, ptr, int, int, ptr, int, int, ptr, ptr, int, int, int, int)) \
	F(cublasSgemmStridedBatched, (ptr, int, int, int, int, int, ptr, ptr, int, long long, ptr, int, long long, ptr, ptr, int, long long, int)) \
	F(cusparseSpMM, (ptr, int, int, ptr, ptr, ptr, ptr, ptr, int, int, ptr)) F(cudnnBackendExecute, (ptr, ptr, ptr)) \
	F(rocblas_sgemm, (ptr, int, int, int, int, int, ptr, ptr, int, ptr, int, ptr, ptr, int)) \
	F(rocblas_gemm_ex, (ptr, int, int, int, int, int, ptr, ptr, int, int, ptr, int, int, ptr, ptr, int, int, ptr, int, int, int, int, int, unsigned)) \
	F(hipblasGemmEx, (ptr, int, int, int, int, int, ptr, ptr, int, int, ptr, int, int, ptr, ptr, int, int, int, int)) \
	F(miopenConvolutionForward, (ptr, ptr, ptr, ptr, ptr, ptr, ptr, int, ptr, ptr, ptr, ptr, size_t)) \
	F(cudaFreeArray, (ptr)) F(cuMemFreeAsync, (dev, ptr)) F(cuMemRelease, (dev)) F(cudaDeviceSynchronize, (void)) F(hipDeviceSynchronize, (void))

/* ... that store an address first */
#define MAKERS(F) \
	F(cudaMallocManaged, (out *to, size_t, unsigned)) F(cudaMallocFromPoolAsync, (out *to, size_t, ptr, ptr)) F(cudaHostAlloc, (out *to, size_t, unsigned)) \
	F(cudaMallocArray, (out *to, const int *, size_t, size_t, unsigned)) F(cuMemAllocManaged, (dev *to, size_t, unsigned)) \
	F(cuMemAllocAsync, (dev *to, size_t, ptr)) F(cuMemAllocFromPoolAsync, (dev *to, size_t, ptr, ptr)) \
	F(cuMemCreate, (dev *to, size_t, ptr, unsigned long long)) F(cuMemHostAlloc, (out *to, size_t, unsigned)) \
	F(hipMallocManaged, (out *to, size_t, unsigned)) F(hipMallocFromPoolAsync, (out *to, size_t, ptr, ptr)) \
	F(hipExtMallocWithFlags, (out *to, size_t, unsigned)) F(hipHostAlloc, (out *to, size_t, unsigned)) \
	F(cudaLibraryGetKernel, (out *to, ptr, const char *)) F(cuLibraryGetKernel, (out *to, ptr, const char *)) F(cuKernelGetFunction, (out *to, ptr)) \
	F(hipModuleGetFunction, (out *to, ptr, const char *))

#define DECLARE(name, arguments) int name arguments;
FUNCTIONS(DECLARE) MAKERS(DECLARE)
int cuMemAllocPitch_v2(dev *to, size_t *pitch, size_t width, size_t height, unsigned element);

#ifdef LIBRARY

#define NOTHING(name, arguments) int name arguments { return 0; }
#define MAKE(name, arguments) int name arguments { static int made[64], n; *(char **)to = (char *)&made[n++ % 64]; return 0; }
FUNCTIONS(NOTHING) MAKERS(MAKE)

int cuMemAllocPitch_v2(dev *to, size_t *pitch, size_t width, size_t height, unsigned element)
{
	*to = 0x700000000;
	*pitch = (width + 511) & ~511ul;
	return height && element ? 0 : 1;
}

#else

#define DO(what, ...) do { printf("%s\n", what); if (__VA_ARGS__) return 1; } while (0)
#define N NULL

/* what: API, kind, name, bytes, stream, groups and threads in x, operations */
int main(void)
{
	static char a, handle, cuda, hip;
	struct dim3 grid = { 5, 6, 7 }, block = { 8, 4, 2 };
	const int half_pairs[5] = { 16, 16, 0, 0, 2 };
	out made, kernel, function;
	size_t pitch;
	dev at;

	nvtxNameCudaStreamA(&cuda, "side");
	roctxNameHipStream("side", &hip);
	DO("cuda copy cudaMemcpyPeer 1001 default", cudaMemcpyPeer(&a, 0, &a, 1, 1001));
	DO("cuda copy cudaMemcpyPeerAsync 1002 side", cudaMemcpyPeerAsync(&a, 0, &a, 1, 1002, &cuda));
	DO("cuda write cudaMemcpyToSymbol 1003 default", cudaMemcpyToSymbol(&a, &a, 1003, 8, 1));
	DO("cuda read cudaMemcpyFromSymbol 1004 default", cudaMemcpyFromSymbol(&a, &a, 1004, 8, 2));
	DO("cuda write cudaMemcpyToSymbolAsync 1005 side", cudaMemcpyToSymbolAsync(&a, &a, 1005, 8, 1, &cuda));
	DO("cuda read cudaMemcpyFromSymbolAsync 1006 side", cudaMemcpyFromSymbolAsync(&a, &a, 1006, 8, 2, &cuda));
	DO("cuda read cudaMemcpy2DAsync 1007 side", cudaMemcpy2DAsync(&a, 64, &a, 128, 53, 19, 2, &cuda));
	DO("cuda copy cuMemcpyDtoD_v2 1008 default", cuMemcpyDtoD_v2(1, 2, 1008));
	DO("cuda read cuMemcpyDtoH_v2 1009 default", cuMemcpyDtoH_v2(&a, 2, 1009));
	DO("cuda write cuMemcpyHtoDAsync_v2 1010 side", cuMemcpyHtoDAsync_v2(1, &a, 1010, &cuda));
	DO("cuda copy cuMemcpyDtoDAsync_v2 1011 side", cuMemcpyDtoDAsync_v2(1, 2, 1011, &cuda));
	DO("cuda fill cuMemsetD8_v2 1012 default", cuMemsetD8_v2(1, 255, 1012));
	DO("cuda fill cuMemsetD8Async 1013 side", cuMemsetD8Async(1, 255, 1013, &cuda));
	DO("cuda fill cuMemsetD32_v2 4056 default", cuMemsetD32_v2(1, 255, 1014));
	DO("hip read hipMemcpy2DAsync 1007 side", hipMemcpy2DAsync(&a, 64, &a, 128, 53, 19, 2, &hip));
	DO("hip write hipMemcpyWithStream 1015 side", hipMemcpyWithStream(&a, &a, 1015, 1, &hip));
	DO("hip copy hipMemcpyDtoD 1016 default", hipMemcpyDtoD(&a, &a, 1016));
	DO("hip write hipMemcpyHtoDAsync 1017 side", hipMemcpyHtoDAsync(&a, &a, 1017, &hip));
	DO("hip copy hipMemcpyDtoDAsync 1018 side", hipMemcpyDtoDAsync(&a, &a, 1018, &hip));
	DO("hip copy hipMemcpyPeer 1019 default", hipMemcpyPeer(&a, 0, &a, 1, 1019));
	DO("hip copy hipMemcpyPeerAsync 1020 side", hipMemcpyPeerAsync(&a, 0, &a, 1, 1020, &hip));
	DO("hip write hipMemcpyToSymbol 1021 default", hipMemcpyToSymbol(&a, &a, 1021, 8, 1));
	DO("hip read hipMemcpyFromSymbolAsync 1022 side", hipMemcpyFromSymbolAsync(&a, &a, 1022, 8, 2, &hip));
	DO("hip fill hipMemsetD8 1023 default", hipMemsetD8(&a, 1, 1023));
	DO("hip fill hipMemsetD32 4096 default", hipMemsetD32(&a, 1, 1024));
	DO("hip fill hipMemsetD32Async 4100 side", hipMemsetD32Async(&a, 1, 1025, &hip));

	cudaLibraryGetKernel(&kernel, &a, "together");
	DO("cuda kernel together 0 side 5 8", cudaLaunchCooperativeKernel(kernel, grid, block, N, 0, &cuda));
	cuLibraryGetKernel(&kernel, &a, "also_together");
	cuKernelGetFunction(&function, kernel);
	DO("cuda kernel also_together 0 side 2 32", cuLaunchCooperativeKernel(function, 2, 1, 1, 32, 1, 1, 0, &cuda, N));
	hipModuleGetFunction(&kernel, &a, "of_a_module");
	DO("hip kernel of_a_module 0 side 3 64", hipModuleLaunchKernel(kernel, 3, 1, 1, 64, 1, 1, 0, &hip, N, N));
	DO("hip kernel of_a_module 0 side 4 64", hipExtModuleLaunchKernel(kernel, 256, 1, 1, 64, 1, 1, 0, &hip, N, N, N, N, 0));
	DO("hip kernel of_a_module 0 side 5 8", hipExtLaunchKernel(kernel, grid, block, N, 0, &hip, N, N, 0));

	cublasSetStream_v2(&handle, &cuda);
	cusparseSetStream(&handle, &cuda);
	DO("cuda kernel cublasDgemm:30x20x10 0 side 0 0 12000", cublasDgemm_v2(&handle, 0, 0, 30, 20, 10, N, N, 1, N, 1, N, N, 1));
	DO("cuda kernel cublasCgemm:30x20x10 0 side 0 0 48000", cublasCgemm_v2(&handle, 0, 0, 30, 20, 10, N, N, 1, N, 1, N, N, 1));
	DO("cuda kernel cublasGemmEx:31x20x10 0 side 0 0 12400", cublasGemmEx(&handle, 0, 0, 31, 20, 10, N, N, 0, 1, N, 0, 1, N, N, 0, 1, 0, 0));
	DO("cuda kernel cublasSgemmStridedBatched:9x3x4x5 0 side 0 0 1080",
	   cublasSgemmStridedBatched(&handle, 0, 0, 3, 4, 5, N, N, 1, 1, N, 1, 1, N, N, 1, 1, 9));
	DO("cuda kernel cusparseSpMM 0 side", cusparseSpMM(&handle, 0, 0, N, N, N, N, N, 0, 0, N));
	DO("cuda kernel cudnnBackendExecute 0 side", cudnnBackendExecute(&handle, N, N));
	rocblas_set_stream(&a, &hip);
	DO("hip kernel rocblas_sgemm:30x20x10 0 side 0 0 12000", rocblas_sgemm(&a, 0, 0, 30, 20, 10, N, N, 1, N, 1, N, N, 1));
	DO("hip kernel rocblas_gemm_ex:31x20x10 0 side 0 0 12400",
	   rocblas_gemm_ex(&a, 0, 0, 31, 20, 10, N, N, 0, 1, N, 0, 1, N, N, 0, 1, N, 0, 1, 0, 0, 0, 0));
	DO("hip kernel hipblasGemmEx:32x20x10 0 side 0 0 12800", hipblasGemmEx(&a, 0, 0, 32, 20, 10, N, N, 0, 1, N, 0, 1, N, N, 0, 1, 0, 0));
	DO("hip kernel miopenConvolutionForward 0 side", miopenConvolutionForward(&a, N, N, N, N, N, N, 0, N, N, N, N, 0));

	DO("cuda memory 1000001", cudaMallocManaged(&made, 1000001, 1));
	DO("cuda memory 1000002", cudaMallocFromPoolAsync(&made, 1000002, N, &cuda));
	DO("cuda memory 25600", cudaMallocArray(&made, half_pairs, 80, 80, 0));
	DO("cuda freed 25600", cudaFreeArray(made));
	DO("cuda memory 1000003", cuMemAllocManaged(&at, 1000003, 1));
	DO("cuda memory 1000004", cuMemAllocAsync(&at, 1000004, &cuda));
	DO("cuda freed 1000004", cuMemFreeAsync(at, &cuda));
	DO("cuda memory 1000005", cuMemAllocFromPoolAsync(&at, 1000005, N, &cuda));
	DO("cuda memory 1000006", cuMemCreate(&at, 1000006, N, 0));
	DO("cuda freed 1000006", cuMemRelease(at));
	DO("cuda memory 10240", cuMemAllocPitch_v2(&at, &pitch, 1000, 10, 4));
	DO("cuda:host memory 1000007", cudaHostAlloc(&made, 1000007, 0));
	DO("cuda:host memory 1000008", cuMemHostAlloc(&made, 1000008, 0));
	DO("hip memory 1000009", hipMallocManaged(&made, 1000009, 1));
	DO("hip memory 1000010", hipMallocFromPoolAsync(&made, 1000010, N, &hip));
	DO("hip memory 1000011", hipExtMallocWithFlags(&made, 1000011, 0));
	DO("hip:host memory 1000012", hipHostAlloc(&made, 1000012, 0));
	cudaDeviceSynchronize();
	hipDeviceSynchronize();
	return 0;
}

#endif
