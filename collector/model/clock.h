/*
 * clock.h - ticks become nanoseconds: straight lines through what the clocks said now and then.
 */
#ifndef CLOCK_H
#define CLOCK_H

#include <mlprof/wire.h>

struct clock_pair {
	u64 ticks, ns;
};

struct clock {
	struct clock_pair *at;
	u32 count, room;
};

void clock_add(struct clock *c, u64 ticks, u64 ns);     /* pairs that go back are left out */
u64 clock_ns(const struct clock *c, u64 ticks);
u64 clock_ticks(const struct clock *c, u64 ns);         /* a length, at the rate of the first line */
void clock_release(struct clock *c);

#endif
