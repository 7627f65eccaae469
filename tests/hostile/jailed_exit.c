/* _exit where nothing but that is allowed: a child, and then the program itself */
#include "hostile.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static void jail(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	struct sock_fprog program = { sizeof rules / sizeof *rules, rules };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(void)
{
	int status = 0;

	if (fork() == 0) {
		churn(1000);
		jail();
		_exit(6);
	}
	wait(&status);
	printf("child %x\n", status);
	fflush(stdout);
	churn(1000);
	jail();
	_exit(5);
}
