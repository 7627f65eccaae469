/* a double-fork daemon that goes on after its starter has ended, and says so through a pipe */
#include "hostile.h"

int main(void)
{
	int done[2];
	char word[8] = "";

	pipe(done);
	if (!fork()) {
		setsid();
		if (!fork()) {
			chdir("/");
			close(done[0]);
			for (int fd = 0; fd < 3; fd++)
				close(fd);
			usleep(100000);
			churn(3000);
			write(done[1], "alive", 5);
			_exit(0);
		}
		_exit(0);
	}
	close(done[1]);
	wait(NULL);
	read(done[0], word, 7);
	printf("daemon: %s\n", word);
	return 0;
}
