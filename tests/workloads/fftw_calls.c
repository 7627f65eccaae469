// cc: -lfftw3 -lfftw3f -lfftw3_threads -pthread -lm
/*
 * fftw_calls.c - transforms of many shapes, in double and single precision; says each as "did SHAPE", and what it held of
 * fftw_malloc at most.
 */
#include <fftw3.h>
#include <stdio.h>

enum { ROOM = 1 << 14 };

void dfftw_plan_dft_1d_(fftw_plan *plan, int *n, fftw_complex *in, fftw_complex *out, int *sign, int *flags);
void dfftw_execute_(fftw_plan *plan);

static fftw_complex *in, *out;
static double *real;

static void fill(void)
{
	for (int i = 0; i < ROOM; i++) {
		in[i][0] = i % 17;
		in[i][1] = i % 5;
		real[i] = i % 13;
	}
}

static void show(void)
{
	double sum = 0;

	for (int i = 0; i < 64; i++)
		sum += out[i][0] * (1 + i % 3) + out[i][1] + real[i];
	printf("%.6g\n", sum);
}

/* Planning may write into the arrays: the values come after it. */
static void run(fftw_plan plan, int times, const char *did)
{
	fill();
	for (int i = 0; i < times; i++) {
		fftw_execute(plan);
		printf("did %s\n", did);
	}
	show();
	fftw_destroy_plan(plan);
}

static void in_double(void)
{
	int sizes[] = { 16, 20 }, box[] = { 4, 6, 10, 2 };
	fftw_plan plan;

	run(fftw_plan_dft_1d(1024, in, out, FFTW_FORWARD, FFTW_ESTIMATE), 5, "fft 1024");
	run(fftw_plan_dft_2d(32, 48, in, out, FFTW_FORWARD, FFTW_ESTIMATE), 3, "fft 32x48");
	run(fftw_plan_dft_3d(8, 10, 12, in, out, FFTW_BACKWARD, FFTW_ESTIMATE), 2, "fft 8x10x12");
	run(fftw_plan_dft_r2c_1d(1000, real, out, FFTW_ESTIMATE), 4, "rfft 1000");
	run(fftw_plan_dft_c2r_1d(500, in, real, FFTW_ESTIMATE), 2, "irfft 500");
	run(fftw_plan_dft_r2c_2d(24, 30, real, out, FFTW_ESTIMATE), 2, "rfft 24x30");
	run(fftw_plan_dft_c2r_3d(6, 8, 10, in, real, FFTW_ESTIMATE), 1, "irfft 6x8x10");
	run(fftw_plan_many_dft(2, sizes, 7, in, NULL, 1, 320, out, NULL, 1, 320, FFTW_FORWARD, FFTW_ESTIMATE), 3,
		"7 fft 16x20");
	run(fftw_plan_many_dft_r2c(1, sizes + 1, 9, real, NULL, 1, 20, out, NULL, 1, 11, FFTW_ESTIMATE), 2, "9 rfft 20");
	run(fftw_plan_dft(4, box, in, out, FFTW_FORWARD, FFTW_ESTIMATE), 1, "fft 4x6x10x2");
	run(fftw_plan_dft_r2c(3, box, real, out, FFTW_ESTIMATE), 1, "rfft 4x6x10");
	run(fftw_plan_r2r_1d(64, real, (double *)out, FFTW_REDFT10, FFTW_ESTIMATE), 2, "r2r 64");

	plan = fftw_plan_dft_1d(256, in, out, FFTW_FORWARD, FFTW_ESTIMATE);
	fill();
	fftw_execute_dft(plan, in + 256, out);          /* the same plan on other arrays */
	puts("did fft 256");
	show();
	fftw_destroy_plan(plan);
	plan = fftw_plan_dft_r2c_1d(128, real, out, FFTW_ESTIMATE);
	fill();
	fftw_execute_dft_r2c(plan, real + 128, out);
	puts("did rfft 128");
	show();
	fftw_destroy_plan(plan);
	fftw_plan_with_nthreads(2);
	run(fftw_plan_dft_2d(64, 64, in, out, FFTW_FORWARD, FFTW_ESTIMATE), 2, "fft 64x64");
}

static void by_fortran_names(void)
{
	int n = 300, sign = FFTW_FORWARD, flags = FFTW_ESTIMATE;
	fftw_plan plan;

	dfftw_plan_dft_1d_(&plan, &n, in, out, &sign, &flags);
	fill();
	dfftw_execute_(&plan);
	puts("did fft 300");
	show();
	fftw_destroy_plan(plan);
}

static void in_single(void)
{
	fftwf_complex *a = fftwf_alloc_complex(2048), *b = fftwf_malloc(2048 * sizeof(*b));
	fftwf_plan plan = fftwf_plan_dft_1d(2048, a, b, FFTW_FORWARD, FFTW_ESTIMATE);

	for (int i = 0; i < 2048; i++) {
		a[i][0] = i % 9;
		a[i][1] = 0;
	}
	for (int i = 0; i < 6; i++) {
		fftwf_execute(plan);
		puts("did fft 2048");
	}
	printf("%.4g\n", b[0][0] + b[1][1]);
	fftwf_destroy_plan(plan);
	fftwf_free(a);
	fftwf_free(b);
}

int main(void)
{
	fftw_init_threads();
	in = fftw_malloc(ROOM * sizeof(*in));
	out = fftw_alloc_complex(ROOM);
	real = fftw_alloc_real(ROOM);
	in_double();
	by_fortran_names();
	in_single();
	fftw_free(in);
	fftw_free(out);
	fftw_free(real);
	printf("held %d\n", ROOM * (16 + 16 + 8) + 2 * 2048 * 8);
	fftw_cleanup_threads();
	return 0;
}
