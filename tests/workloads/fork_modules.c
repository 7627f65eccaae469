/*
 * fork_modules.c - has many libraries and makes many children at once: each has much to say of itself before anything else, and waits
 * for the CPU while it does.
 *
 * fork_modules DIRECTORY: all that is in it are libraries, of this file too
 */
#include "expect.h"
#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 10, CHILDREN = 100, WORK_MS = 2 };

/* A module is known of when a stack has met it. */
__attribute__((constructor)) static void allocate(void)
{
	free(used(malloc(10)));
}

static void open_all(const char *name)
{
	DIR *dir = opendir(name);
	char path[PATH_MAX];

	for (struct dirent *e; dir && (e = readdir(dir));) {
		snprintf(path, sizeof path, "%s/%s", name, e->d_name);
		if (e->d_name[0] != '.' && !dlopen(path, RTLD_NOW)) {
			fprintf(stderr, "%s\n", dlerror());
			exit(1);
		}
	}
}

static void work(void)
{
	clock_t end = clock() + WORK_MS * CLOCKS_PER_SEC / 1000;

	while (clock() < end)
		free(used(malloc(100)));
	_exit(3);
}

int main(int argc, char **argv)
{
	open_all(argc > 1 ? argv[1] : ".");
	for (int i = 0; i < ROUNDS; i++) {
		for (int j = 0; j < CHILDREN; j++)
			if (fork() == 0)
				work();
		while (wait(NULL) > 0)
			;
	}
	return 0;
}
