/*
 * sort.h - sorted runs of 8-byte keys become one.
 */
#ifndef SORT_H
#define SORT_H

#include <mlprof/wire.h>

/* Run i is key[start[i]] .. key[start[i + 1] - 1]. All keys differ. `other` is as long as `key`; the result is
 * one of the two. start[] is spoilt. Bits above `time_shift` say where in the window a key is. */
u64 *sort_runs(u64 *key, u64 *other, u32 *start, u32 runs, u32 time_shift);

#endif
