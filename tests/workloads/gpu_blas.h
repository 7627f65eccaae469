/* gpu_blas.h - the part of cuBLAS and cuDNN that gpu_blas.c stands in for; types and order of arguments are those of the public headers. */
#ifndef GPU_BLAS_H
#define GPU_BLAS_H

int cublasSetStream_v2(void *handle, void *stream);
int cublasSgemm_v2(void *handle, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb,
		   const float *beta, float *c, int ldc);
int cublasGemmStridedBatchedEx(void *handle, int ta, int tb, int m, int n, int k, const void *alpha, const void *a, int a_type, int lda, long a_stride,
			       const void *b, int b_type, int ldb, long b_stride, const void *beta, void *c, int c_type, int ldc, long c_stride, int batch,
			       int compute, int algorithm);
int cublasLtMatmul(void *handle, void *compute, const void *alpha, const void *a, void *a_layout, const void *b, void *b_layout, const void *beta,
		   const void *c, void *c_layout, void *d, void *d_layout, const void *algorithm, void *workspace, unsigned long bytes, void *stream);
int cudnnSetStream(void *handle, void *stream);
int cudnnConvolutionForward(void *handle, const void *alpha, void *x_shape, const void *x, void *w_shape, const void *w, void *shape, int algorithm,
			    void *workspace, unsigned long bytes, const void *beta, void *y_shape, void *y);

#endif
