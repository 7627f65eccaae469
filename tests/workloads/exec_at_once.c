/*
 * exec_at_once.c - a second after the start, processes are made that allocate, become others, and allocate much more.
 *
 *   exec_at_once PROCESSES     starts so many; each is this program again
 *   exec_at_once               what they become
 *
 * Prints how many of them did not end well.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BLOCKS = 20000 };

static void *volatile kept;

static void child(char *self)
{
	char *argv[] = { self, NULL };

	kept = malloc(100);
	execv(self, argv);
	_exit(4);
}

static int become(void)
{
	for (int i = 0; i < BLOCKS; i++) {
		kept = malloc(32);
		free(kept);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int processes = argc > 1 ? atoi(argv[1]) : 0, status, bad = 0;

	if (!processes)
		return become();
	sleep(1);
	for (int i = 0; i < processes; i++)
		if (fork() == 0)
			child(argv[0]);
	while (wait(&status) > 0)
		bad += status != 0;
	printf("%d bad\n", bad);
	return bad != 0;
}
