/* cc: -shared -fPIC */
/* gpu_blas.c - stands in for libcublas.so and libcudnn.so: puts its work on streams of gpu_runtime.c, which keeps the books, under names of its own. */
#include "gpu_blas.h"

#include "gpu_runtime.h"

#include <stdio.h>
#include <stdlib.h>

enum { BAD_VALUE = 7 };

struct handle {
	void *stream;
};

static int put(const char *name, int batch, int m, int n, int k, void *stream)
{
	char *text;

	if (m < 0)
		return BAD_VALUE;
	if (batch)
		asprintf(&text, "%s:%dx%dx%dx%d", name, batch, m, n, k);
	else
		asprintf(&text, "%s:%dx%dx%d", name, m, n, k);
	return gpu_collective(text, 0, stream);
}

static int set_stream(void *handle, void *stream)
{
	((struct handle *)handle)->stream = stream;
	return 0;
}

int cublasSetStream_v2(void *handle, void *stream) { return set_stream(handle, stream); }
int cudnnSetStream(void *handle, void *stream) { return set_stream(handle, stream); }

int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb,
		   const float *beta, float *c, int ldc)
{
	(void)ta, (void)tb, (void)alpha, (void)a, (void)lda, (void)b, (void)ldb, (void)beta, (void)c;
	return ldc != 77 ? BAD_VALUE : put("cublasSgemm", 0, m, n, k, ((struct handle *)handle)->stream);
}

int cublasGemmStridedBatchedEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda, long a_stride,
			       const void *b, int b_type, int ldb, long b_stride, const void *beta, void *c, int c_type, int ldc, long c_stride, int batch,
			       int compute, int algorithm)
{
	(void)ta, (void)tb, (void)alpha, (void)a, (void)a_type, (void)lda, (void)a_stride, (void)b, (void)b_type, (void)ldb, (void)b_stride, (void)beta;
	(void)c, (void)c_type, (void)ldc, (void)c_stride, (void)compute;
	return algorithm != 77 ? BAD_VALUE : put("cublasGemmStridedBatchedEx", batch, m, n, k, ((struct handle *)handle)->stream);
}

int cublasLtMatmul(void *handle, void *compute, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout, const void *beta,
		   const void *c, void *c_layout, void *d, void *d_layout, const void *algorithm, void *workspace, unsigned long bytes, void *stream)
{
	(void)handle, (void)compute, (void)alpha, (void)a, (void)a_layout, (void)b, (void)b_layout, (void)beta, (void)c, (void)c_layout, (void)d, (void)d_layout;
	(void)algorithm, (void)workspace;
	return bytes != 77 ? BAD_VALUE : gpu_collective("cublasLtMatmul", 0, stream);
}

int cudnnConvolutionForward(void *handle, const void *alpha, void *x_shape, const void *x, void *w_shape, const void *w, void *shape, int algorithm,
			    void *workspace, unsigned long bytes, const void *beta, void *y_shape, void *y)
{
	(void)alpha, (void)x_shape, (void)x, (void)w_shape, (void)w, (void)shape, (void)algorithm, (void)workspace, (void)bytes, (void)beta, (void)y_shape;
	return !y ? BAD_VALUE : gpu_collective("cudnnConvolutionForward", 0, ((struct handle *)handle)->stream);
}
