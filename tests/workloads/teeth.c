/*
 * teeth.c - a saw of memory: 40 teeth of different heights with much small noise between them. However the
 * curve is thinned, each tooth's tip and foot must still be there, at its time.
 *
 * Prints "tooth BYTES NANOSECONDS" (since the first tooth).
 */
#include "expect.h"
#include <time.h>

enum { TEETH = 40, NOISE = 30000 };

static long long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static void noise(void)
{
	for (int i = 0; i < NOISE; i++)
		free(used(malloc(16 + i % 100)));
}

int main(void)
{
	long long first = 0;

	for (int i = 0; i < TEETH; i++) {
		size_t half = 100000 + 7777 * (i * 17 % TEETH);
		void *a, *b;

		noise();
		usleep(3000);
		a = used(malloc(half));
		b = used(malloc(half + 1));
		if (!i)
			first = now();
		say("tooth %zu %lld\n", 2 * half + 1, now() - first);
		usleep(3000);
		free(a);
		free(b);
	}
	return 0;
}
