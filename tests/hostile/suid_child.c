/* a set-user-id program in the tree: it must run as it would, unprofiled */
#include "hostile.h"

int main(int argc, char **argv)
{
	pid_t pid;

	churn(100);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		execl(argv[1], argv[1], NULL);
		_exit(99);
	}
	report_child("set-user-id child", pid);
	return argc != 2;
}
