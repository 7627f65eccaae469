/* closes every descriptor, then opens files that get whatever numbers were free; nothing foreign may end up in them */
#include "hostile.h"
#include <sys/stat.h>

enum { FILES = 200 };

int main(void)
{
	int fd[FILES], keep;
	long foreign = 0;

	churn(100);
	keep = fcntl(1, F_DUPFD, 900);
	for (int i = 3; i < 20000; i++)
		if (i != keep)
			close(i);
	for (int i = 0; i < FILES; i++) {
		char name[] = "/tmp/hostile.XXXXXX";

		fd[i] = mkstemp(name);
		unlink(name);
	}
	for (int i = 0; i < 40; i++)            /* high numbers too: that is where a guest would hide */
		fcntl(fd[0], F_DUPFD, 1000 + i * 450);
	churn(200000);
	for (int i = 0; i < FILES; i++) {
		struct stat st;

		foreign += fstat(fd[i], &st) ? 0 : st.st_size;
	}
	dprintf(keep, "first descriptor %d, %ld foreign bytes\n", fd[0], foreign);
	return 0;
}
