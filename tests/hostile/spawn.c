/* posix_spawn, posix_spawnp, a failing one, and one with an environment and descriptors of its own */
#include "hostile.h"
#include <spawn.h>

extern char **environ;

int main(void)
{
	char *hello[] = { "sh", "-c", "echo spawned; exit 2", NULL };
	char *count[] = { "sh", "-c", "echo $ONE; ls /proc/self/fd | wc -l", NULL };
	char *own[] = { "ONE=1", "PATH=/bin:/usr/bin", NULL };
	posix_spawn_file_actions_t actions;
	pid_t pid;

	if (!posix_spawn(&pid, "/bin/sh", NULL, NULL, hello, environ))
		report_child("posix_spawn", pid);
	if (!posix_spawnp(&pid, "sh", NULL, NULL, hello, environ))
		report_child("posix_spawnp", pid);
	printf("missing: %s\n", strerror(posix_spawn(&pid, "/no/such", NULL, NULL, hello, environ)));
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 7, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addclose(&actions, 7);
	fflush(stdout);
	if (!posix_spawn(&pid, "/bin/sh", &actions, NULL, count, own))
		report_child("own environment", pid);
	posix_spawn_file_actions_destroy(&actions);
	return 0;
}
