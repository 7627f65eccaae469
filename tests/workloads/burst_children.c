// cc: -pthread
/*
 * burst_children.c - as many threads as CPUs do nothing but allocate, as long as two million pairs take each; then come children.
 *
 *   burst_children end      that allocate and end; how many blocks there were is said
 *   burst_children die      that are killed, or leave in a handler, while they allocate
 *   burst_children pipes    none; says how much fits into a new pipe before, meanwhile and after
 */
#include "expect.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAIRS = 2000000, CHILDREN = 10, BLOCKS = 2000, VICTIMS = 300 };

static void *churn(void *count)
{
	for (long i = 0; i < (long)count; i++)
		free(used(malloc(40)));
	return NULL;
}

static void say_pipe(void)
{
	int fd[2];

	if (pipe(fd) == 0) {
		say("pipe %d\n", fcntl(fd[0], F_GETPIPE_SZ));
		close(fd[0]);
		close(fd[1]);
	}
}

static int burst(int pipes)
{
	int threads = sysconf(_SC_NPROCESSORS_ONLN);
	pthread_t id[threads];

	for (int i = 0; i < threads; i++)
		pthread_create(&id[i], NULL, churn, (void *)(long)PAIRS);
	for (int i = 0; pipes && i < 20; i++) {
		usleep(20000);
		say_pipe();
	}
	for (int i = 0; i < threads; i++)
		pthread_join(id[i], NULL);
	return threads;
}

static void leave(int signal)
{
	(void)signal;
	_exit(9);
}

static void die(int i)
{
	struct itimerval when = { .it_value.tv_usec = 500 + i * 37 % 3000 };
	pthread_t id;

	signal(SIGALRM, i % 3 ? leave : SIG_DFL);
	setitimer(ITIMER_REAL, &when, NULL);
	if (i % 2)
		pthread_create(&id, NULL, churn, (void *)(1L << 40));
	churn((void *)(1L << 40));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "end";
	int i, threads;

	say_pipe();
	threads = burst(!strcmp(what, "pipes"));
	for (i = 0; !strcmp(what, "end") && i < CHILDREN; i++)
		if (fork() == 0) {
			churn((void *)(long)(BLOCKS / 2));
			usleep(100000);
			churn((void *)(long)(BLOCKS / 2));
			_exit(4);
		}
	for (i = 0; !strcmp(what, "die") && i < VICTIMS; i++) {
		if (fork() == 0)
			die(i);
		wait(NULL);
	}
	while (wait(NULL) > 0)
		;
	say_pipe();
	say("blocks %d\n", threads * PAIRS + (!strcmp(what, "end") ? CHILDREN * BLOCKS : 0));
	return 0;
}
