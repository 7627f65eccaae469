// cc: -shared -fPIC -pthread
/* the library of probe_torture.cc: see probe_lib.h */
#include "probe_lib.h"
#include <errno.h>
#include <pthread.h>
#include <stdexcept>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- books ------------------------------------------------------------------------------- */

enum { BOOKS = 128 };

static struct { const char *symbol; long calls, never, unwound; } book[BOOKS];
static int books;

/* Pointers are enough: each name is one string, or equal ones are added up by who reads the file. No lock: signal handlers. */
static int page_of(const char *symbol)
{
	for (int i = 0;; i++) {
		const char *none = nullptr;

		if (i >= BOOKS)
			_exit(99);
		if (__atomic_load_n(&book[i].symbol, __ATOMIC_ACQUIRE) == symbol ||
		    __atomic_compare_exchange_n(&book[i].symbol, &none, symbol, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) || none == symbol) {
			for (int n = __atomic_load_n(&books, __ATOMIC_ACQUIRE); n <= i;)
				if (__atomic_compare_exchange_n(&books, &n, i + 1, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
					break;
			return i;
		}
	}
}

void book_call(const char *symbol) { __atomic_add_fetch(&book[page_of(symbol)].calls, 1, __ATOMIC_RELAXED); }
void book_never(const char *symbol) { __atomic_add_fetch(&book[page_of(symbol)].never, 1, __ATOMIC_RELAXED); }
void book_unwound(const char *symbol) { __atomic_add_fetch(&book[page_of(symbol)].unwound, 1, __ATOMIC_RELAXED); }

int book_write(const char *path)
{
	FILE *file = fopen(path, "w");

	if (!file)
		return -1;
	for (int i = 0; i < books; i++)
		fprintf(file, "%s %ld %ld %ld\n", book[i].symbol, book[i].calls, book[i].never, book[i].unwound);
	return fclose(file);
}

#define CALLED() book_call(__func__)

/* ---- arguments and results ---------------------------------------------------------------- */

long t_ints(long a, long b, long c, long d, long e, long f)
{
	CALLED();
	return a + 10 * b + 100 * c + 1000 * d + 10000 * e + 100000 * f;
}

double t_floats(float a, double b, float c, double d, double e, float f, double g, float h)
{
	CALLED();
	return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h;
}

long t_eleven(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k)
{
	CALLED();
	return a ^ b << 3 ^ c << 6 ^ d << 9 ^ e << 12 ^ f << 15 ^ g << 18 ^ h << 21 ^ i << 24 ^ j << 27 ^ k << 30;
}

/* A sibling call: it jumps, and the words on the stack are those that its own caller put there. */
long t_sibling(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k)
{
	CALLED();
	return t_eleven(f, e, d, c, b, a, g, h, i, j, k);
}

double t_twenty(int a, double b, long c, float d, char e, double f, short g, double h, long i, double j, long k, double l, double m,
		double n, double o, long p, long q, double r, float s, unsigned char t)
{
	CALLED();
	return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10 + k * 11 + l * 12 + m * 13 + n * 14 + o * 15 + p * 16 +
	       q * 17 + r * 18 + s * 19 + t * 20;
}

struct words6 t_struct48(long seed)
{
	struct words6 s;

	CALLED();
	for (int i = 0; i < 6; i++)
		s.w[i] = seed * (i + 1);
	return s;
}

struct mixed_pair t_mixed_pair(double a, long b) { CALLED(); return { b + 1, a / 2 }; }
struct double_pair t_double_pair(double a, double b) { CALLED(); return { b, a }; }
struct float4 t_float4(float a) { CALLED(); return { { a, a * 2, a * 3, a * 4 } }; }
__int128 t_int128(__int128 a, long b) { CALLED(); return a * b; }
long double t_long_double(long double a, int b, long double c) { CALLED(); return a * b + c; }
double _Complex t_complex(double _Complex a, float _Complex b) { book_call("_Z9t_complexCdCf"); return a * (double _Complex)b; }

static long sum(const long *w, int n)
{
	long s = 0;

	for (int i = 0; i < n; i++)
		s = s * 31 + w[i];
	return s;
}

long t_by_value48(int before, struct words6 s, int after) { CALLED(); return before + sum(s.w, 6) * after; }
long t_by_value480(int before, struct words60 s, int after) { CALLED(); return before + sum(s.w, 60) * after; }

double t_valist(const char *kinds, va_list list)
{
	double s = 0;

	CALLED();
	for (; *kinds; kinds++)
		s = s * 3 + (*kinds == 'd' ? va_arg(list, double) : *kinds == 'i' ? va_arg(list, int) : (double)va_arg(list, long double));
	return s;
}

double t_variadic(const char *kinds, ...)
{
	va_list list;
	double s;

	CALLED();
	va_start(list, kinds);
	s = t_valist(kinds, list);
	va_end(list);
	return s;
}

void t_nothing(void) { CALLED(); }
int t_errno(int value) { CALLED(); return errno = value; }
long t_pointer(long a) { CALLED(); return a + 5; }
void t_in_handler(int) { CALLED(); }

const char *t_text(const char *text, const long *numbers, struct words6 *out)
{
	CALLED();
	out->w[0] = numbers[0] + 1;
	return text + 1;
}

int t_wide_supported(void) { CALLED(); return __builtin_cpu_supports("avx2") != 0; }

__attribute__((target("avx2"))) __m256d t_wide(__m256d a, __m256d b)
{
	CALLED();
	return _mm256_add_pd(a, _mm256_mul_pd(b, b));
}

__attribute__((target("avx2"))) __m256d t_wide_stack(long n, __m256d a, __m256d b, __m256d c, __m256d d, __m256d e, __m256d f, __m256d g,
						      __m256d h, __m256d i, long m, __m256d j)
{
	CALLED();
	return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * (double)n + j * (double)m;
}

int t_widest_supported(void) { CALLED(); return __builtin_cpu_supports("avx512f") != 0; }

__attribute__((target("avx512f"))) __m512d t_widest(__m512d a, __m512d b)
{
	CALLED();
	return _mm512_add_pd(a, _mm512_mul_pd(b, b));
}

/* ---- calls of the library to itself --------------------------------------------------------- */

/* Two, as a function's calls of itself are no references. */
long t_fibonacci(long n) { CALLED(); return n < 2 ? n : t_fibonacci_too(n - 1) + t_fibonacci_too(n - 2); }
long t_fibonacci_too(long n) { CALLED(); return n < 2 ? n : t_fibonacci(n - 1) + t_fibonacci(n - 2); }
long t_inner(long n) { CALLED(); return n * 3; }
long t_outer(long n) { CALLED(); return t_inner(n) + t_inner(n + 1); }

Probed *book_object(long n) { return new Probed(n); }
Probed::~Probed() {}
long Probed::shift(long by) { book_call("_ZN6Probed5shiftEl"); return n << by; }
long Probed::add(long to) const { book_call("_ZNK6Probed3addEl"); return n + to; }
long Probed::twice(long n) { book_call("_ZN6Probed5twiceEl"); return 2 * n; }

/* ---- ways out ---------------------------------------------------------------------------------- */

void t_throw(int value)
{
	CALLED();
	book_unwound(__func__);
	throw std::runtime_error(std::to_string(value));
}

void t_throw_through(int value)
{
	CALLED();
	book_unwound(__func__);
	t_throw(value);
}

/* Caught, and thrown on: through two probed frames each time. */
int t_catch(int value)
{
	CALLED();
	try {
		try {
			t_throw_through(value);
		} catch (const std::exception &e) {
			t_throw_through(atoi(e.what()) + 1);
		}
	} catch (const std::runtime_error &e) {
		return atoi(e.what());
	}
	return -1;
}

void t_jump(jmp_buf to, int value)
{
	CALLED();
	book_never(__func__);
	longjmp(to, value);
}

void t_call(void (*f)(void *), void *argument) { CALLED(); f(argument); }

void *t_start(void *argument)
{
	CALLED();
	for (int i = 0; i < 100; i++)
		t_nothing();
	return argument;
}

/* Is cancelled here. */
void t_wait(void)
{
	CALLED();
	book_unwound(__func__);
	for (;;)
		pause();
}

/* 0: fork, the child returns too; 1: fork, the child ends here; 2: vfork and exec */
int t_fork(int how)
{
	pid_t pid;
	int status = 0;

	CALLED();
	pid = how == 2 ? vfork() : fork();
	if (pid == 0 && how == 2) {
		execl("/bin/true", "true", nullptr);
		_exit(1);
	}
	if (pid == 0 && how == 1)
		_exit(17);
	if (pid == 0)
		return -1;
	waitpid(pid, &status, 0);
	return WEXITSTATUS(status);
}
