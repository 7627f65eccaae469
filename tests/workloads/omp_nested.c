// cc: -fopenmp
/*
 * omp_nested.c - parallel regions, and regions within them; says "did outer N" and "did inner N": how often each was entered while no
 * other was around it.
 */
#include <omp.h>
#include <stdio.h>

static int alone, ran;

static void within(void)
{
	if (!omp_in_parallel())
		alone++;
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
	printf("did outer 3\ndid inner %d\n%d\n", alone, ran);
	return 0;
}
