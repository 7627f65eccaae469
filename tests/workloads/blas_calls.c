// cc: -lm
/*
 * blas_calls.c - calls into BLAS and LAPACK by their C and Fortran names; says each as "did LETTER KIND SIZES" and what came out.
 *
 *   blas_calls WORD...          products: gemm, gemv, triangular and symmetric ones; blis; lapack
 *
 * Matrices lie in rooms that are larger than they are and some are transposed: a leading dimension is never the shape.
 * -DBLIS and -DLAPACK: the library has these.
 */
#include <complex.h>
#include <stdio.h>
#include <string.h>

typedef int integer;
#define C(name) cblas_##name
#define F(name) name##_

enum { ROW = 101, COLUMN = 102, PLAIN = 111, TRANSPOSED = 112, UPPER = 121, LOWER = 122, NONUNIT = 131, LEFT = 141,
	RIGHT = 142 };
enum { ROOM = 64 * 64 };

static integer *number(integer value)           /* Fortran's arguments are all pointers */
{
	static integer slots[32];
	static unsigned used;
	integer *slot = &slots[used++ % 32];

	*slot = value;
	return slot;
}

/*
 * For each type of number: LETTER, C type, how C functions take a factor, and how one is made of a variable.
 * gemm(m, n, k) by C is row-major with A transposed (lies as k x m), by Fortran column-major with B transposed (lies as n x k).
 */
#define PRODUCTS(x, type, factor, of) \
void C(x##gemm)(int, int, int, integer, integer, integer, factor, const type *, integer, const type *, integer, factor, \
	type *, integer); \
void C(x##gemv)(int, int, integer, integer, factor, const type *, integer, const type *, integer, factor, type *, integer); \
void C(x##trsm)(int, int, int, int, int, integer, integer, factor, const type *, integer, type *, integer); \
void C(x##trmm)(int, int, int, int, int, integer, integer, factor, const type *, integer, type *, integer); \
void C(x##symm)(int, int, int, integer, integer, factor, const type *, integer, const type *, integer, factor, type *, integer); \
void C(x##syrk)(int, int, int, integer, integer, factor, const type *, integer, factor, type *, integer); \
void F(x##gemm)(const char *, const char *, integer *, integer *, integer *, type *, type *, integer *, type *, integer *, \
	type *, type *, integer *, size_t, size_t); \
void F(x##gemv)(const char *, integer *, integer *, type *, type *, integer *, type *, integer *, type *, type *, integer *, \
	size_t); \
void F(x##trsm)(const char *, const char *, const char *, const char *, integer *, integer *, type *, type *, integer *, \
	type *, integer *, size_t, size_t, size_t, size_t); \
void F(x##trmm)(const char *, const char *, const char *, const char *, integer *, integer *, type *, type *, integer *, \
	type *, integer *, size_t, size_t, size_t, size_t); \
void F(x##symm)(const char *, const char *, integer *, integer *, type *, type *, integer *, type *, integer *, type *, \
	type *, integer *, size_t, size_t); \
void F(x##syrk)(const char *, const char *, integer *, integer *, type *, type *, integer *, type *, type *, integer *, \
	size_t, size_t); \
\
static type x##a[ROOM], x##b[ROOM], x##c[ROOM]; \
\
static void x##_fill(void) \
{ \
	for (int i = 0; i < ROOM; i++) { \
		x##a[i] = 1 + i % 7 + (i % 65 == 0) * 64; \
		x##b[i] = 2 - i % 5; \
		x##c[i] = i % 3; \
	} \
} \
\
static void x##_sum(void) \
{ \
	type sum = 0; \
\
	for (int i = 0; i < ROOM; i++) \
		sum += x##c[i] * (type)(1 + i % 11); \
	printf("%.6g %.6g\n", (double)creal(sum), (double)cimag(sum)); \
} \
\
static void x##_products(void) \
{ \
	type two = 2, half = 0.5; \
\
	x##_fill(); \
	for (int i = 0; i < 3; i++) { \
		C(x##gemm)(ROW, TRANSPOSED, PLAIN, 24, 36, 12, of two, x##a, 30, x##b, 40, of half, x##c, 50); \
		puts("did " #x " gemm 24 36 12"); \
	} \
	x##_sum(); \
	F(x##gemm)("N", "T", number(20), number(10), number(30), &two, x##a, number(33), x##b, number(22), &half, x##c, \
		number(44), 1, 1); \
	puts("did " #x " gemm 20 10 30"); \
	x##_sum(); \
	C(x##gemv)(ROW, TRANSPOSED, 17, 29, of two, x##a, 31, x##b, 1, of half, x##c, 2); \
	puts("did " #x " gemv 17 29"); \
	F(x##gemv)("T", number(21), number(13), &two, x##a, number(40), x##b, number(2), &half, x##c, number(1), 1); \
	puts("did " #x " gemv 21 13"); \
	x##_sum(); \
	C(x##trsm)(COLUMN, LEFT, UPPER, PLAIN, NONUNIT, 18, 7, of two, x##a, 64, x##c, 32); \
	puts("did " #x " trsm 18 7 18"); \
	F(x##trsm)("R", "U", "N", "N", number(9), number(16), &two, x##a, number(64), x##c, number(32), 1, 1, 1, 1); \
	puts("did " #x " trsm 9 16 16"); \
	C(x##trmm)(COLUMN, RIGHT, UPPER, PLAIN, NONUNIT, 5, 14, of two, x##a, 64, x##c, 32); \
	puts("did " #x " trmm 5 14 14"); \
	F(x##trmm)("L", "U", "N", "N", number(6), number(19), &two, x##a, number(64), x##c, number(32), 1, 1, 1, 1); \
	puts("did " #x " trmm 6 19 6"); \
	x##_sum(); \
	C(x##symm)(ROW, RIGHT, UPPER, 8, 15, of two, x##a, 64, x##b, 33, of half, x##c, 34); \
	puts("did " #x " symm 8 15 15"); \
	F(x##symm)("L", "U", number(11), number(3), &two, x##a, number(64), x##b, number(33), &half, x##c, number(34), 1, 1); \
	puts("did " #x " symm 11 3 11"); \
	C(x##syrk)(ROW, UPPER, PLAIN, 23, 4, of two, x##a, 20, of half, x##c, 34); \
	puts("did " #x " syrk 23 4"); \
	F(x##syrk)("U", "T", number(12), number(25), &two, x##a, number(26), &half, x##c, number(34), 1, 1); \
	puts("did " #x " syrk 12 25"); \
	x##_sum(); \
}

PRODUCTS(s, float, float, )
PRODUCTS(d, double, double, )
PRODUCTS(c, float complex, const void *, &)
PRODUCTS(z, double complex, const void *, &)

/* ---- BLIS: many products at once, half of a product, names of its own ------------------------------------- */

#ifdef BLIS
void cblas_dgemm_batch(int, const int *, const int *, const int *, const int *, const int *, const double *,
	const double **, const int *,
		       const double **, const int *, const double *, double **, const int *, int, const int *);
void dgemm_batch_(const char *, const char *, const int *, const int *, const int *, const double *, const double **,
	const int *,
		  const double **, const int *, const double *, double **, const int *, const int *, const int *);
void cblas_dgemmt(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
void dgemmt_(const char *, const char *, const char *, const int *, const int *, const double *, const double *,
	const int *, const double *,
	     const int *, const double *, double *, const int *);
void bli_dgemm(int, int, long, long, long, const double *, const double *, long, long, const double *, long, long,
	const double *, double *, long, long);

static void blis(void)
{
	int trans[] = { PLAIN, PLAIN }, m[] = { 8, 4 }, n[] = { 6, 4 }, k[] = { 10, 4 }, ld[] = { 16, 16 }, size[] = { 3,
		2 }, one = 1;
	const double factor[] = { 2, 1 }, *a[5], *b[5];
	double *c[5];

	d_fill();
	for (int i = 0; i < 5; i++) {
		a[i] = da + 256 * i;
		b[i] = db + 256 * i;
		c[i] = dc + 256 * i;
	}
	cblas_dgemm_batch(ROW, trans, trans, m, n, k, factor, a, ld, b, ld, factor, c, ld, 1, size);
	puts("did d gemm_batch 8 6 10 3");
	d_sum();
	dgemm_batch_("N", "N", m, n, k, factor, a, ld, b, ld, factor, c, ld, &one, size);
	puts("did d gemm_batch 8 6 10 3");
	d_sum();
	cblas_dgemm_batch(ROW, trans, trans, m, n, k, factor, a, ld, b, ld, factor, c, ld, 2, size);
	puts("groups d gemm_batch 8 6 10 3");           /* and 2 of 4x4x4 */
	d_sum();
	cblas_dgemmt(ROW, UPPER, PLAIN, PLAIN, 13, 9, 2, da, 16, db, 16, 1, dc, 16);
	puts("did d gemmt 13 9");
	dgemmt_("U", "N", "N", number(7), number(5), factor, da, ld, db, ld, factor, dc, ld);
	puts("did d gemmt 7 5");
	bli_dgemm(0, 0, 5, 7, 9, factor, da, 16, 1, db, 16, 1, factor, dc, 16, 1);
	puts("did d gemm 5 7 9");
	d_sum();
}
#else
static void blis(void)
{
}
#endif

/* ---- LAPACK -------------------------------------------------------------------------------- */

#ifdef LAPACK
void F(dgetrf)(integer *, integer *, double *, integer *, integer *, integer *);
void F(dpotrf)(const char *, integer *, double *, integer *, integer *, size_t);
void F(dgesv)(integer *, integer *, double *, integer *, integer *, double *, integer *, integer *);
void F(zgesv)(integer *, integer *, double complex *, integer *, integer *, double complex *, integer *, integer *);
void F(dgeqrf)(integer *, integer *, double *, integer *, double *, double *, integer *, integer *);
void F(dgesdd)(const char *, integer *, integer *, double *, integer *, double *, double *, integer *, double *, integer *,
	double *, integer *,
	       integer *, integer *, size_t);
void F(dsyevd)(const char *, const char *, integer *, double *, integer *, double *, double *, integer *, integer *,
	integer *, integer *, size_t,
	       size_t);

static void show(const char *did, integer info, const double *values, int n)
{
	double sum = 0;

	for (int i = 0; i < n; i++)
		sum += values[i] < 0 ? -values[i] : values[i];
	printf("did %s\n%ld %.6g\n", did, (long)info, sum);
}

static void lapack(void)
{
	static double work[65536], values[64], u[ROOM], v[ROOM];
	static integer steps[64], room[1024];
	integer info;

	d_fill();
	F(dgetrf)(number(30), number(20), da, number(64), steps, &info);
	show("d getrf 30 20", info, da, 20);
	d_fill();
	F(dgesv)(number(25), number(3), da, number(64), steps, db, number(64), &info);
	show("d gesv 25 3", info, db, 25);
	z_fill();
	F(zgesv)(number(16), number(2), za, number(64), steps, zb, number(64), &info);
	show("z gesv 16 2", info, (double *)zb, 32);
	for (int i = 0; i < 64 * 64; i++)
		da[i] = i / 64 == i % 64 ? 40 : 1;
	F(dpotrf)("L", number(40), da, number(64), &info, 1);
	show("d potrf 40", info, da, 40);

	/* With lwork -1 a function only says how much room it would like. */
	d_fill();
	F(dgeqrf)(number(36), number(28), da, number(64), values, work, number(-1), &info);
	F(dgeqrf)(number(36), number(28), da, number(64), values, work, number(65536), &info);
	show("d geqrf 36 28", info, da, 28);
	d_fill();
	F(dgesdd)("S", number(26), number(22), da, number(64), values, u, number(64), v, number(64), work, number(-1), room,
		&info, 1);
	F(dgesdd)("S", number(26), number(22), da, number(64), values, u, number(64), v, number(64), work, number(65536),
		room, &info, 1);
	show("d gesdd 26 22", info, values, 22);
	d_fill();
	F(dsyevd)("V", "U", number(32), da, number(64), values, work, number(-1), room, number(-1), &info, 1, 1);
	F(dsyevd)("V", "U", number(32), da, number(64), values, work, number(65536), room, number(1024), &info, 1, 1);
	show("d syevd 32", info, values, 32);
}
#else
static void lapack(void)
{
}
#endif

static void products(void)
{
	s_products();
	d_products();
	c_products();
	z_products();
}

int main(int count, char **word)
{
	static const struct { const char *word; void (*run)(void); } parts[] = { { "products", products }, { "blis", blis },
		{ "lapack", lapack } };

	for (int i = 1; i < count; i++)
		for (int p = 0; p < 3; p++)
			if (!strcmp(word[i], parts[p].word))
				parts[p].run();
	return 0;
}
