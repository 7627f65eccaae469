/* sets LD_PRELOAD itself, for its children and for the next program */
#include "hostile.h"

int main(int argc, char **argv)
{
	setenv("LD_PRELOAD", argv[1], 1);
	fflush(stdout);
	if (argc == 2) {
		report_child("system", ({ pid_t pid = fork(); if (!pid) execl("/bin/sh", "sh", "-c", "exit $((3 + 4))", NULL); pid; }));
		execl("/proc/self/exe", argv[0], argv[1], "second", NULL);
	}
	churn(100);
	printf("%s: %d\n", argv[2], getenv("PRELOADED_HELLO") != NULL);
	return 0;
}
