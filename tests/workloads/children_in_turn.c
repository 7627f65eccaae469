/* children_in_turn.c - a hundred children, each begun when the one before is over: no two of them have their memory at once. */
#include "expect.h"
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 100, BYTES = 2 << 20 };

static void live(int i)
{
	memset(used(malloc(BYTES)), 1, BYTES);
	usleep(8000);
	if (i % 2)
		exit(0);
	_exit(0);
}

int main(void)
{
	int status, bad = 0;

	for (int i = 0; i < CHILDREN; i++) {
		if (fork() == 0)
			live(i);
		bad += wait(&status) < 0 || status != 0;
	}
	return bad != 0;
}
