// cc: -fopenmp
/*
 * omp_nested.c - parallel regions, and regions within them; says "did outer N" and "did inner N": how often each was entered by a
 * thread.
 */
#include <omp.h>
#include <stdio.h>

static int inner, ran;

static void within(void)
{
#pragma omp atomic
	inner++;
#pragma omp parallel num_threads(2)
	{
#pragma omp atomic
		ran++;
	}
}

int main(void)
{
	omp_set_max_active_levels(2);
	for (int i = 0; i < 3; i++) {
#pragma omp parallel num_threads(2)
		within();
	}
	for (int i = 0; i < 5; i++)
		within();
	printf("did outer 3\ndid inner %d\n%d\n", inner, ran);
	return 0;
}
