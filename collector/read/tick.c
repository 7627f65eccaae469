/*
 * tick.c - see tick.h.
 */
#include "tick.h"
#include <time.h>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#include <x86intrin.h>

u32 tick_kind_here(void)
{
	u32 a, b, c, d;

	if (__get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1 << 8)
		return TICK_TSC;
	return TICK_MONOTONIC;
}

static u64 cpu_ticks(void)
{
	return __rdtsc();
}
#else
u32 tick_kind_here(void)
{
	return TICK_MONOTONIC;
}

static u64 cpu_ticks(void)
{
	return tick_monotonic_ns();
}
#endif

static u64 clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

u64 tick_monotonic_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

u64 tick_now(u32 kind)
{
	return kind == TICK_TSC ? cpu_ticks() : tick_monotonic_ns();
}

struct rec_clock tick_clocks(u32 kind)
{
	struct rec_clock best = { 0 };
	u64 least = UINT64_MAX;
	int i;

	for (i = 0; i < 3; i++) {
		u64 before = tick_now(kind), ns = tick_monotonic_ns(), after = tick_now(kind);

		if (after - before >= least)
			continue;
		least = after - before;
		best.ticks = kind == TICK_TSC ? before + least / 2 : ns;
		best.monotonic = ns;
		best.realtime = clock_ns(CLOCK_REALTIME);
		best.boottime = clock_ns(CLOCK_BOOTTIME);
	}
	return best;
}
