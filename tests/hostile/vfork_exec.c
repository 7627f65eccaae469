/* vfork and exec, and an exec that fails in a vfork child */
#include "hostile.h"

int main(void)
{
	for (int i = 0; i < 3; i++) {
		volatile int error = 0;
		pid_t pid;

		churn(100);
		pid = vfork();
		if (!pid) {
			if (i == 1)
				execl("/no/such/program", "x", NULL);
			else
				execl("/bin/sh", "sh", "-c", "exit 3", NULL);
			error = errno;
			_exit(4);
		}
		report_child("vfork child", pid);
		printf("errno in the child: %d\n", error);
	}
	printf("%u\n", churn(1000));
	return 0;
}
