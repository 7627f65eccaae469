/*
 * exec_busy.c - exec_busy TIMES: becomes itself so often, each time in the midst of much that is being recorded.
 */
#include "expect.h"

enum { PAIRS = 200000 };

int main(int argc, char **argv)
{
	int left = argc > 1 ? atoi(argv[1]) : 0;
	char less[16];

	for (int i = 0; i < PAIRS; i++)
		free(used(malloc(24)));
	if (left) {
		snprintf(less, sizeof less, "%d", left - 1);
		execl(argv[0], argv[0], less, NULL);
		return 1;
	}
	return 0;
}
