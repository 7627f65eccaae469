/*
 * probe_call.c - what a probed call costs: prints the ns of CPU time that a call of an empty function takes.
 *
 *   probe_call empty      one argument
 *   probe_call values     two numbers and a string
 *
 * The best of many short batches: neighbours and the pipe make others longer.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { BATCH = 4000, BATCHES = 500 };

long p_empty(long a);
long p_values(long a, long b, const char *text);

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

static double batch(int values)
{
	double start = now();
	volatile long sum = 0;

	for (int i = 0; i < BATCH; i++)
		sum += values ? p_values(i, 7, "feed_forward_up") : p_empty(i);
	return (now() - start) / BATCH;
}

int main(int argc, char **argv)
{
	double best = 1e9;
	int values = argc > 1 && !strcmp(argv[1], "values");

	for (int i = 0; i < BATCHES; i++) {
		double took = batch(values);

		best = took < best ? took : best;
	}
	printf("call %.2f\n", best);
	return 0;
}
