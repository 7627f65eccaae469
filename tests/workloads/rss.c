/*
 * rss.c [moment] - touches 64 MiB, burns CPU for a while, sleeps: what the kernel's own counters must show. With an argument, it then
 * touches 192 MiB for a moment, when nobody looks often any more.
 */
#include "expect.h"
#include <time.h>

static void touch_for_a_moment(size_t size)
{
	char *p = used(malloc(size));

	used(memset(p, 1, size));
	free(p);
	usleep(200000);
}

int main(int argc, char **argv)
{
	size_t size = 64 << 20;
	char *p = used(malloc(size));
	clock_t end;

	(void)argv;
	memset(p, 1, size);
	for (end = clock() + CLOCKS_PER_SEC / 4; clock() < end;)
		;
	usleep(argc > 1 ? 400000 : 200000);
	free(p);
	if (argc > 1)
		touch_for_a_moment(3 * size);
	return 0;
}
