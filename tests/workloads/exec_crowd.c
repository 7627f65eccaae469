// cc: -pthread
/*
 * exec_crowd.c - becomes itself again, as often as it is told, each time while five threads do nothing but allocate.
 */
#include "expect.h"
#include <pthread.h>
#include <unistd.h>

static void *churn(void *arg)
{
	for (;;)
		free(used(malloc(64)));
	return arg;
}

int main(int argc, char **argv)
{
	int left = argc > 1 ? atoi(argv[1]) : 0;
	char next[16];
	pthread_t id;

	for (int i = 0; i < 5; i++)
		pthread_create(&id, NULL, churn, NULL);
	usleep(150000);
	if (!left)
		_exit(0);
	snprintf(next, sizeof next, "%d", left - 1);
	execl("/proc/self/exe", argv[0], next, (char *)NULL);
	return 1;
}
