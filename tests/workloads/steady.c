// cc: -pthread
/*
 * steady.c - allocates in three threads and a child for a given time, then prints a sum that does not depend
 * on how fast it was: for tests that harm mlprof while it runs.
 */
#include "expect.h"
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static double end;

static void *work(void *result)
{
	int good = 1;

	while (now() < end) {
		for (int i = 0; i < 200; i++) {
			unsigned char *p = used(malloc(100 + i));

			memset(p, i, 100);
			good &= p[99] == i;
			free(p);
		}
		usleep(100);
	}
	*(int *)result = good;
	return NULL;
}

int main(int argc, char **argv)
{
	int good[3] = { 0 }, status = 0;
	pthread_t id[3];
	pid_t child;

	end = now() + (argc > 1 ? atof(argv[1]) : 1);
	say("ready\n");
	for (int i = 0; i < 3; i++)
		pthread_create(&id[i], NULL, work, &good[i]);
	usleep(50000);
	child = fork();
	if (!child) {
		work(&good[0]);
		_exit(good[0] ? 17 : 1);
	}
	for (int i = 0; i < 3; i++)
		pthread_join(id[i], NULL);
	waitpid(child, &status, 0);
	say("good %d %d %d, child %d\n", good[0], good[1], good[2], WEXITSTATUS(status));
	return 23;
}
