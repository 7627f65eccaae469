/*
 * probe_lib.h - functions with every kind of argument and result that the ABI knows; each keeps count of its calls.
 *
 * The library's own books (book_*) are not probed: what they say is the truth.
 */
#ifndef PROBE_LIB_H
#define PROBE_LIB_H

#include <complex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

struct words6 { long w[6]; };
struct words60 { long w[60]; };
struct mixed_pair { long n; double d; };
struct double_pair { double a, b; };
struct float4 { float v[4]; };

void book_call(const char *symbol);
void book_never(const char *symbol);            /* one of its calls will not return */
void book_unwound(const char *symbol);          /* ... will be left by an exception */
int book_write(const char *path);

long t_ints(long a, long b, long c, long d, long e, long f);
double t_floats(float a, double b, float c, double d, double e, float f, double g, float h);
long t_eleven(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k);
long t_sibling(long a, long b, long c, long d, long e, long f, long g, long h, long i, long j, long k);
double t_twenty(int a, double b, long c, float d, char e, double f, short g, double h, long i, double j, long k, double l, double m,
		double n, double o, long p, long q, double r, float s, unsigned char t);
struct words6 t_struct48(long seed);
struct mixed_pair t_mixed_pair(double a, long b);
struct double_pair t_double_pair(double a, double b);
struct float4 t_float4(float a);
__int128 t_int128(__int128 a, long b);
long double t_long_double(long double a, int b, long double c);
long t_by_value48(int before, struct words6 s, int after);
long t_by_value480(int before, struct words60 s, int after);
double t_variadic(const char *kinds, ...);
double t_valist(const char *kinds, va_list list);
void t_nothing(void);
int t_errno(int value);
long t_fibonacci(long n);
long t_fibonacci_too(long n);
long t_outer(long n);
long t_inner(long n);
void t_throw(int value);
int t_catch(int value);
void t_throw_through(int value);
void t_jump(jmp_buf to, int value);
void t_call(void (*f)(void *), void *argument);
void *t_start(void *argument);
void t_in_handler(int number);
void t_wait(void);
int t_fork(int how);
long t_pointer(long a);
const char *t_text(const char *text, const long *numbers, struct words6 *out);
int t_wide_supported(void);
int t_widest_supported(void);
#ifdef __x86_64__
__m256d t_wide(__m256d a, __m256d b) __attribute__((target("avx2")));
__m256d t_wide_stack(long n, __m256d a, __m256d b, __m256d c, __m256d d, __m256d e, __m256d f, __m256d g, __m256d h, __m256d i, long m,
		     __m256d j) __attribute__((target("avx2")));
__m512d t_widest(__m512d a, __m512d b) __attribute__((target("avx512f")));
#endif

#ifdef __cplusplus
}

class Probed;
extern "C" Probed *book_object(long n);     /* made there: a program that knows the vtable has a copy of its own */

class Probed {
public:
	virtual ~Probed();
	virtual long shift(long by);
	long add(long to) const;
	static long twice(long n);
	friend Probed *book_object(long n);
private:
	explicit Probed(long n) : n(n) {}
	long n;
};

double _Complex t_complex(double _Complex a, float _Complex b);
#endif
#endif
