/* chdir and chroot into an empty directory before the end */
#include "hostile.h"

int main(void)
{
	char name[] = "/tmp/hostile.XXXXXX";

	mkdtemp(name);
	churn(5000);
	printf("chdir %d", chdir(name));
	rmdir(name);
	printf(" chroot %d", chroot("/var/empty") == 0 || chroot("/proc/self/fdinfo") == 0 ? 0 : errno);
	printf(" chdir %d\n", chdir("/"));
	churn(200000);
	if (!fork())
		_exit(churn(1000) != 0);
	wait(NULL);
	return 6;
}
