// cc: -pthread
/* seccomp that answers EPERM to every open, socket and pipe from now on, then a lot of work and new threads */
#include "hostile.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define DENY(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static void *work(void *unused)
{
	churn(20000);
	return unused;
}

int main(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		DENY(__NR_openat),
		DENY(__NR_open),
		DENY(__NR_socket),
		DENY(__NR_pipe2),
		DENY(__NR_memfd_create),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	pthread_t id[70];
	int fd;

	churn(1000);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 1;
	fd = open("/dev/null", O_RDONLY);
	printf("open: %d %s\n", fd, strerror(errno));
	for (int i = 0; i < 70; i++)
		pthread_create(&id[i], NULL, work, NULL);
	for (int i = 0; i < 70; i++)
		pthread_join(id[i], NULL);
	printf("%u\n", churn(1000));
	return 0;
}
