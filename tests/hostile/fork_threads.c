// cc: -pthread
/* fork from 8 threads while all of them allocate */
#include "hostile.h"

static int ok;

static void *work(void *unused)
{
	for (int i = 0; i < 20; i++) {
		pid_t pid;
		int status;

		churn(300);
		pid = fork();
		if (!pid)
			_exit(churn(200) != 0 ? 5 : 6);
		if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 5)
			__atomic_add_fetch(&ok, 1, __ATOMIC_RELAXED);
	}
	return unused;
}

int main(void)
{
	pthread_t id[8];

	for (int i = 0; i < 8; i++)
		pthread_create(&id[i], NULL, work, NULL);
	for (int i = 0; i < 8; i++)
		pthread_join(id[i], NULL);
	printf("%d good children\n", ok);
	return 0;
}
