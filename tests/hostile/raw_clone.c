/* processes made behind libc's back: clone by syscall, and one that shares memory until it execs */
#include "hostile.h"
#include <sched.h>
#include <sys/syscall.h>

static int shared(void *unused)
{
	(void)unused;
	execl("/bin/sh", "sh", "-c", "exit 8", NULL);
	_exit(9);
}

int main(void)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	pid_t pid;

	churn(100);
	pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		churn(3000);
		syscall(SYS_exit_group, 4);
	}
	report_child("raw clone", pid);
	report_child("clone with shared memory", clone(shared, stack + sizeof stack, CLONE_VM | CLONE_VFORK | SIGCHLD, NULL));
	printf("%u\n", churn(1000));
	return 0;
}
