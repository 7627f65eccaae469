/*
 * hostile.h - for programs whose every output must be the same with and without mlprof.
 */
#ifndef HOSTILE_H
#define HOSTILE_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The optimiser may not remove a malloc whose block it sees nobody use. */
static inline void *used(void *p)
{
	__asm__ volatile("" : "+r"(p) : : "memory");
	return p;
}

/* Allocates and frees a little of everything; the sum of what it read back is always the same. */
static inline unsigned churn(int rounds)
{
	unsigned sum = 0;

	for (int i = 0; i < rounds; i++) {
		unsigned char *p = malloc(16 + i % 300), *q = calloc(1, 40), *r;

		if (!p || !q)
			abort();
		memset(p, i, 16);
		r = realloc(p, 700);
		if (!r)
			abort();
		sum += r[15] + q[39];
		free(q);
		free(r);
	}
	return sum;
}

static inline void report_child(const char *what, pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid)
		printf("%s: wait says %s\n", what, strerror(errno));
	else
		printf("%s: exit %d signal %d\n", what, WIFEXITED(status) ? WEXITSTATUS(status) : -1,
		       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
	fflush(stdout);
}

/* Lowest free descriptor: tells whether somebody took one. */
static inline int lowest_fd(void)
{
	int fd = open("/dev/null", O_RDONLY);

	close(fd);
	return fd;
}

#endif
