/*
 * rss.c - touches 64 MiB, burns CPU for a while, sleeps: what the kernel's own counters must show.
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
	usleep(200000);
	free(p);
	return 0;
}
