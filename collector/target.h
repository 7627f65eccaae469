/*
 * target.h - is this a program that LD_PRELOAD can reach? Asked before anything happens.
 */
#ifndef TARGET_H
#define TARGET_H

#include <limits.h>
#include <stddef.h>

struct target {
	char path[PATH_MAX];            /* what execve() is to be given */
	char why[PATH_MAX + 256];       /* one line, if it cannot be profiled */
};

/* Looks `command` up as a shell would. 0, or mlprof's exit status for it, with `why` filled. */
int target_find(struct target *t, const char *command);

#endif
