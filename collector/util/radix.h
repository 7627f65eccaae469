/*
 * radix.h - many things put in order of a number, the smallest first; equal ones stay in the order they had.
 */
#ifndef RADIX_H
#define RADIX_H

#include <mlprof/wire.h>

struct ranked {
	u64 key;
	u32 at;                         /* which one it is */
};

/* `list` has room for twice as many; the result is its first or its second half. */
struct ranked *radix_sort(struct ranked *list, u32 count);

#endif
