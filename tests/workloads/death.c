// cc: -pthread
/*
 * death.c - allocates a known number of blocks in two threads, then ends in the way it is told to.
 * "dry" allocates none: what libc takes for the thread.
 */
#include "expect.h"
#include <pthread.h>
#include <signal.h>

enum { SIZE = 48 };

static int each = 20000;

static void *churn(void *unused)
{
	(void)unused;
	for (int i = 0; i < each; i++) {
		char *p = used(malloc(SIZE));

		if (i % 2)
			free(p);
	}
	return NULL;
}

static void *churn_and_wait(void *unused)
{
	churn(unused);
	*(volatile int *)unused = 1;
	pause();
	return NULL;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "return";
	volatile int done = 0;
	pthread_t id;

	if (!strcmp(how, "dry"))
		each = 0;
	say("expect totals.allocs %d\nexpect totals.frees %d\n", 2 * each, each);
	say("expect totals.live_at_exit_bytes %d\n", each * SIZE);
	pthread_create(&id, NULL, churn_and_wait, (void *)&done);
	churn(NULL);
	while (!done)
		usleep(100);
	if (!strcmp(how, "kill"))
		kill(getpid(), SIGKILL);
	if (!strcmp(how, "segv"))
		raise(SIGSEGV);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "_exit"))
		_exit(3);
	if (!strcmp(how, "quick_exit"))
		quick_exit(4);
	if (!strcmp(how, "exit"))
		exit(5);
	if (!strcmp(how, "term"))
		raise(SIGTERM);
	if (!strcmp(how, "exec"))
		execl("/bin/true", "true", NULL);
	return 0;
}
