// cc: -lm
/*
 * mkl_names.c - a stand-in for MKL, which Debian does not have: functions with its names and the arguments that its documentation
 * gives them, which compute nothing but a sum of what arrived. Built twice: as the library (-DLIBRARY) and as the program, which
 * says each call as "did NAME: FLOPS BYTES".
 */
#include <stdint.h>
#include <stdio.h>

typedef int64_t wide;

#ifdef LIBRARY
#define SUM(to, ...) { *(to) += __VA_ARGS__; }
#else
#define SUM(to, ...) ;
#endif

void cblas_dgemm_64(int layout, int ta, int tb, wide m, wide n, wide k, double alpha, const double *a, wide lda, const double *b,
		    wide ldb, double beta, double *c, wide ldc)
SUM(c, layout + ta + tb + (double)(m + n + k + lda + ldb + ldc) + alpha + *a + *b + beta)

void dgemm_64(const char *ta, const char *tb, const wide *m, const wide *n, const wide *k, const double *alpha, const double *a,
	      const wide *lda, const double *b, const wide *ldb, const double *beta, double *c, const wide *ldc)
SUM(c, *ta + *tb + (double)(*m + *n + *k + *lda + *ldb + *ldc) + *alpha + *a + *b + *beta)

void dgemm(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha, const double *a,
	   const int *lda, const double *b, const int *ldb, const double *beta, double *c, const int *ldc)
SUM(c, *ta + *tb + *m + *n + *k + *alpha + *a + *lda + *b + *ldb + *beta + *ldc)

void cblas_sgemm_batch_strided(int layout, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, int stride_a,
			       const float *b, int ldb, int stride_b, float beta, float *c, int ldc, int stride_c, int many)
SUM(c, (float)(layout + ta + tb + m + n + k + lda + stride_a + ldb + stride_b + ldc + stride_c + many) + alpha + *a + *b + beta)

/* Those of complex numbers take pointers to void. */
void cblas_zgemm_batch_strided(int layout, int ta, int tb, int m, int n, int k, const double *alpha, const double *a, int lda,
			       int stride_a, const double *b, int ldb, int stride_b, const double *beta, double *c, int ldc,
			       int stride_c, int many)
SUM(c, layout + ta + tb + m + n + k + lda + stride_a + ldb + stride_b + ldc + stride_c + many + *alpha + *a + *b + *beta)

void cblas_cgemm_batch(int layout, const int *ta, const int *tb, const int *m, const int *n, const int *k, const float *alpha,
		       const float **a, const int *lda, const float **b, const int *ldb, const float *beta, float **c,
		       const int *ldc, int groups, const int *sizes)
SUM(*c, (float)(layout + *ta + *tb + *m + *n + *k + *lda + *ldb + *ldc + groups + *sizes) + *alpha + **a + **b + *beta)

void cblas_gemm_s8u8s32(int layout, int ta, int tb, int offset, int m, int n, int k, float alpha, const char *a, int lda, int8_t ao,
			const char *b, int ldb, int8_t bo, float beta, int32_t *c, int ldc, const int32_t *co)
SUM(c, layout + ta + tb + offset + m + n + k + (int)alpha + *a + lda + ao + *b + ldb + bo + (int)beta + ldc + *co)

void cblas_gemm_bf16bf16f32(int layout, int ta, int tb, int m, int n, int k, float alpha, const uint16_t *a, int lda,
			    const uint16_t *b, int ldb, float beta, float *c, int ldc)
SUM(c, (float)(layout + ta + tb + m + n + k + *a + lda + *b + ldb + ldc) + alpha + beta)

void cblas_hgemm(int layout, int ta, int tb, int m, int n, int k, uint16_t alpha, const uint16_t *a, int lda, const uint16_t *b, int ldb,
		 uint16_t beta, uint16_t *c, int ldc)
SUM(c, (uint16_t)(layout + ta + tb + m + n + k + alpha + *a + lda + *b + ldb + beta + ldc))

#ifndef LIBRARY
int main(void)
{
	double real[2] = { 1.5, 2 }, sum[2] = { 0 };
	float narrow[2] = { 2.5, 3 }, narrow_sum[2] = { 0 };
	int trans = 111, m = 6, n = 5, k = 4, ld = 9, sizes[] = { 7 }, whole = 0;
	const float *from[] = { narrow };
	float *to[] = { narrow_sum };
	wide wm = 30, wn = 20, wk = 10, wld = 40;
	uint16_t half = 3, half_sum = 0;

	cblas_dgemm_64(101, 111, 112, 12, 14, 16, 1.25, real, 17, real, 18, 0.5, sum, 19);
	printf("did dgemm 12x14x16: %d %d\n", 2 * 12 * 14 * 16, 8 * (12 * 16 + 16 * 14 + 12 * 14));
	dgemm_64("N", "T", &wm, &wn, &wk, real, real, &wld, real, &wld, real, sum, &wld);
	printf("did dgemm 30x20x10: %d %d\n", 2 * 30 * 20 * 10, 8 * (300 + 200 + 600));
	dgemm("N", "N", &m, &n, &k, real, real, &ld, real, &ld, real, sum, &ld);
	printf("did dgemm 6x5x4: %d %d\n", 2 * 6 * 5 * 4, 8 * (24 + 20 + 30));
	cblas_sgemm_batch_strided(101, 111, 111, 3, 4, 5, 1.5f, narrow, 6, 60, narrow, 7, 70, 0.25f, narrow_sum, 8, 80, 11);
	printf("did sgemm_batch 11 of 3x4x5: %d %d\n", 11 * 2 * 3 * 4 * 5, 11 * 4 * (15 + 20 + 12));
	cblas_zgemm_batch_strided(101, 111, 111, 4, 5, 6, real, real, 6, 60, real, 7, 70, real, sum, 8, 80, 13);
	printf("did zgemm_batch 13 of 4x5x6: %d %d\n", 13 * 8 * 4 * 5 * 6, 13 * 16 * (24 + 30 + 20));
	cblas_cgemm_batch(102, &trans, &trans, &m, &n, &k, narrow, from, &ld, from, &ld, narrow, to, &ld, 1, sizes);
	printf("did cgemm_batch 7 of 6x5x4: %d %d\n", 7 * 8 * 6 * 5 * 4, 7 * 8 * (24 + 20 + 30));
	cblas_gemm_s8u8s32(101, 111, 111, 171, 21, 22, 23, 2, "a", 24, 1, "b", 25, 2, 3, &whole, 26, &m);
	printf("did cblas_gemm_s8u8s32 21x22x23: %d %d\n", 2 * 21 * 22 * 23, 21 * 23 + 23 * 22 + 4 * 21 * 22);
	cblas_gemm_bf16bf16f32(101, 111, 111, 31, 32, 33, 2, &half, 34, &half, 35, 1, narrow_sum, 36);
	printf("did cblas_gemm_bf16bf16f32 31x32x33: %d %d\n", 2 * 31 * 32 * 33, 2 * (31 * 33 + 33 * 32) + 4 * 31 * 32);
	cblas_hgemm(101, 111, 111, 41, 42, 43, 5, &half, 44, &half, 45, 6, &half_sum, 46);
	printf("did cblas_hgemm 41x42x43: %d %d\n", 2 * 41 * 42 * 43, 2 * (41 * 43 + 43 * 42 + 41 * 42));
	printf("%g %g %d %u\n", sum[0], narrow_sum[0], whole, half_sum);
	return 0;
}
#endif
