/*
 * ticks.h - the time of a record: the CPU's counter where it is invariant, else CLOCK_MONOTONIC.
 *
 * The collector decides which (control.tick_kind), so that all processes count alike.
 */
#ifndef TICKS_H
#define TICKS_H

#include "guest.h"
#include <time.h>

static inline u64 ticks(void)
{
	struct timespec t;

	if (likely(guest.tick_kind == TICK_TSC))
		return __builtin_ia32_rdtsc();
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000ull + (u64)t.tv_nsec;
}

/*
 * For a stamp that must not be older than what the thread has just read: another thread's block is moved right after its
 * address was taken over, and without the fence the counter may be read while that load is still under way (seen: 81
 * ticks). A free does without, which is 15 ns of 60: the collector can tell a free that comes before its block. A stamp
 * taken after a real call needs none: what follows it in the program waits for it.
 */
static inline u64 ticks_fenced(void)
{
	__builtin_ia32_lfence();
	return ticks();
}

#endif
