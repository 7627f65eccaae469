/*
 * limits.h - what the system lets us take: memory, and pages for pipes.
 */
#ifndef LIMITS_H
#define LIMITS_H

#include <mlprof/wire.h>

u64 limits_memory(void);                /* the machine's, or less where a control group says so */
u64 limits_pipes(void);                 /* bytes that all pipes of this user may hold before new ones are tiny; UINT64_MAX: any */
/* The least limit of a group and those around it; UINT64_MAX: none. `root`: where groups are mounted, `group` begins with a slash. */
u64 limits_group(const char *root, const char *group);

#endif
