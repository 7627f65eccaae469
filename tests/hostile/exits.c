// cc: -pthread
/* ends by the way it is told to: the status that others see is its own */
#include "hostile.h"

static void *leave(void *how)
{
	churn(100);
	exit(*(char *)how - '0');
}

int main(int argc, char **argv)
{
	const char *how = argv[1];
	pthread_t id;

	churn(1000);
	write(1, lowest_fd() == 3 ? "three\n" : "not three\n", lowest_fd() == 3 ? 6 : 10);
	if (!strcmp(how, "segv"))
		raise(SIGSEGV);
	if (!strcmp(how, "kill"))
		raise(SIGKILL);
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "_exit"))
		_exit(21);
	if (!strcmp(how, "thread") && !pthread_create(&id, NULL, leave, "5"))
		pthread_exit(NULL);
	if (!strcmp(how, "orphan") && !fork()) {
		usleep(200000);
		_exit(churn(100) == 0);
	}
	return argc;
}
