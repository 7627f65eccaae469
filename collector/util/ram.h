/*
 * ram.h - how much memory there is for a program: the machine's, or less where a control group says so.
 */
#ifndef RAM_H
#define RAM_H

#include <mlprof/wire.h>

u64 ram_allowed(void);
/* The least limit of a group and those around it; UINT64_MAX: none. `root`: where groups are mounted, `group` begins with a slash. */
u64 ram_limit(const char *root, const char *group);

#endif
