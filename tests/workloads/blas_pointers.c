/*
 * blas_pointers.c - BLAS and LAPACK through a table of pointers in data, as f2py makes them for scipy: no PLT, no GOT, no dlsym.
 */
#include <stdio.h>

void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *, const int *,
	    const double *, const int *, const double *, double *, const int *);
void dgetrf_(const int *, const int *, double *, const int *, int *, int *);

static struct {
	const char *name;
	void (*gemm)(const char *, const char *, const int *, const int *, const int *, const double *, const double *, const int *,
		     const double *, const int *, const double *, double *, const int *);
	void (*getrf)(const int *, const int *, double *, const int *, int *, int *);
} volatile routine = { "routines", dgemm_, dgetrf_ };

enum { N = 48 };

int main(void)
{
	static double a[N * N], b[N * N], c[N * N];
	double one = 1, zero = 0;
	int n = N, pivot[N], info;

	for (int i = 0; i < N * N; i++) {
		a[i] = i % (N + 1) ? 0.5 : N;
		b[i] = i % 7;
	}
	for (int i = 0; i < 5; i++)
		routine.gemm("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n);
	routine.getrf(&n, &n, a, &n, pivot, &info);
	printf("%g %d\n", c[1], info);
	return 0;
}
