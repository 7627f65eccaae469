/* gpu_blas_user.c - products and a convolution on the default stream and on another one; one call fails. */
#include "gpu_blas.h"
#include "gpu_runtime.h"

#include <stdio.h>

int main(void)
{
	void *blas = NULL, *dnn = NULL, *stream, *x = &stream;
	float one = 1;

	cudaStreamCreate(&stream);
	for (int i = 0; i < 3; i++) {
		cublasSgemm_v2(&blas, 0, 0, 64, 32, 16, &one, x, 64, x, 16, &one, x, 77);
		cudaDeviceSynchronize();
	}
	cublasSetStream_v2(&blas, stream);
	cudnnSetStream(&dnn, stream);
	cublasSgemm_v2(&blas, 0, 0, 8, 8, 8, &one, x, 8, x, 8, &one, x, 77);
	cublasGemmStridedBatchedEx(&blas, 0, 0, 4, 5, 6, &one, x, 0, 4, 24, x, 0, 6, 30, &one, x, 0, 4, 20, 10, 0, 77);
	cublasLtMatmul(&blas, x, &one, x, x, x, x, &one, x, x, x, x, x, x, 77, stream);
	cudnnConvolutionForward(&dnn, &one, x, x, x, x, x, 1, x, 0, &one, x, x);
	printf("bad size %d\n", cublasSgemm_v2(&blas, 0, 0, -1, 8, 8, &one, x, 8, x, 8, &one, x, 77));
	cudaStreamSynchronize(stream);
	return gpu_books();
}
