/* fork without exec: children and grandchildren that allocate, free what they inherited, and die in different ways */
#include "hostile.h"

static int child(int how, char *inherited)
{
	free(inherited);
	if (how == 0 && !fork())
		_exit(churn(500) & 0x3f);
	if (how == 0)
		wait(NULL);
	churn(2000);
	switch (how) {
	case 1: _exit(7);
	case 2: abort();
	case 3: raise(SIGKILL);
	case 4: exit(9);
	}
	return 0;
}

int main(void)
{
	char *block = malloc(100);

	for (int how = 0; how < 5; how++) {
		pid_t pid = fork();

		if (!pid)
			_exit(child(how, block));
		report_child("child", pid);
	}
	printf("%u, wait: %s\n", churn(1000), wait(NULL) < 0 ? strerror(errno) : "somebody unknown");
	return 0;
}
