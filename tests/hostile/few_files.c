/* RLIMIT_NOFILE 10: as many descriptors as before, no more, no fewer */
#include "hostile.h"
#include <sys/resource.h>

int main(int argc, char **argv)
{
	struct rlimit limit = { 10, 10 };
	int count = 0, fd = 0;
	pid_t pid;

	if (argc == 1) {
		setrlimit(RLIMIT_NOFILE, &limit);
		execl("/proc/self/exe", argv[0], "again", NULL);
	}
	churn(50000);
	while ((fd = open("/dev/null", O_RDONLY)) >= 0)
		count++;
	printf("%d more, then %s\n", count, strerror(errno));
	churn(50000);
	pid = fork();
	if (!pid)
		_exit(churn(1000) == 0);
	report_child("child", pid);
	return 0;
}
