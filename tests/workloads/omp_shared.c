/*
 * omp_shared.c - a parallel region that shares N variables, which clang passes as so many arguments of __kmpc_fork_call(); says what
 * they came to.
 */
#include <stdio.h>

#define TEN(f, n)     f(n##0) f(n##1) f(n##2) f(n##3) f(n##4) f(n##5) f(n##6) f(n##7) f(n##8) f(n##9)
#define HUNDRED(f, n) TEN(f, n##0) TEN(f, n##1) TEN(f, n##2) TEN(f, n##3) TEN(f, n##4) TEN(f, n##5) TEN(f, n##6) TEN(f, n##7) TEN(f, n##8) TEN(f, n##9)
#define ALL(f)        HUNDRED(f, 1) HUNDRED(f, 2)

#define VARIABLE(n) volatile int v##n = n;
#define ADD(n)      sum += v##n++;
#define COLLECT(n)  after += v##n;

int main(void)
{
	long sum = 0, after = 0;
	ALL(VARIABLE)

#pragma omp parallel num_threads(2)
	{
#pragma omp critical
		{ ALL(ADD) }
	}
	ALL(COLLECT)
	printf("%ld %ld\n", sum, after);
	return 0;
}
