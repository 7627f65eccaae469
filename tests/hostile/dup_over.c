/* dup2 of a file of its own over every descriptor that it can find open */
#include "hostile.h"
#include <dirent.h>
#include <sys/stat.h>

int main(void)
{
	char name[] = "/tmp/hostile.XXXXXX";
	int mine = mkstemp(name);
	struct stat st;

	unlink(name);
	write(mine, "mine", 4);
	churn(100);
	for (int fd = 3; fd < 20000; fd++)
		if (fd != mine && fcntl(fd, F_GETFD) >= 0)
			dup2(mine, fd);
	churn(200000);
	fstat(mine, &st);
	printf("%ld bytes in the file\n", (long)st.st_size);
	return 0;
}
