// cc: -fopenmp
/*
 * regions.c - 25 parallel regions of one loop, 4 of another.
 */
#include <stdio.h>

static double add(int n)
{
	double sum = 0;

#pragma omp parallel for reduction(+ : sum)
	for (int i = 0; i < n; i++)
		sum += i;
	return sum;
}

int main(void)
{
	double sum = 0;
	int parts = 0;

	for (int i = 0; i < 25; i++)
		sum += add(1000);
	for (int i = 0; i < 4; i++) {
#pragma omp parallel num_threads(2) reduction(+ : parts)
		parts++;
	}
	printf("%g %d\n", sum, parts);
	return 0;
}
