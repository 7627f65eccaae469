/*
 * rss.c - touches 64 MiB, burns CPU for a while, sleeps: what the kernel's own counters must show. Then it sleeps until nobody looks
 * often, and touches 192 MiB for a moment that is too short to be sampled.
 */
#include "expect.h"
#include <time.h>

int main(void)
{
	size_t size = 64 << 20;
	char *p = used(malloc(size));
	clock_t end;

	memset(p, 1, size);
	for (end = clock() + CLOCKS_PER_SEC / 4; clock() < end;)
		;
	usleep(400000);
	free(p);
	p = used(malloc(3 * size));
	used(memset(p, 1, 3 * size));
	free(p);
	usleep(200000);
	return 0;
}
