/*
 * tick.h - the clock that stamps records, and what the other clocks say beside it.
 */
#ifndef TICK_H
#define TICK_H

#include <mlprof/wire.h>

u32 tick_kind_here(void);                       /* TICK_TSC where it is invariant */
u64 tick_now(u32 kind);
struct rec_clock tick_clocks(u32 kind);         /* best of three */
u64 tick_monotonic_ns(void);

#endif
