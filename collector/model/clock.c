/*
 * clock.c - see clock.h. Before the first pair and after the last, the nearest line goes on.
 */
#include "clock.h"
#include "../util/array.h"

enum { LATELY = 8 };            /* pairs: a tenth of a second or more */

void clock_add(struct clock *c, u64 ticks, u64 ns)
{
	const struct clock_pair *last = c->count ? &c->at[c->count - 1] : NULL;

	if (ticks >> 62 || ns >> 62 || (last && (ticks <= last->ticks || ns <= last->ns)))
		return;
	ARRAY_ROOM(c->at, c->room, c->count + 1);
	c->at[c->count++] = (struct clock_pair) { ticks, ns };
}

/* Most ask for what has just happened. */
static u32 line_of(const struct clock *c, u64 ticks)
{
	u32 low = 0, high = c->count - 1;

	if (high > LATELY && c->at[high - LATELY].ticks <= ticks)
		low = high - LATELY;
	while (high - low > 1) {
		u32 mid = (low + high) / 2;

		if (c->at[mid].ticks <= ticks)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static u64 clamp(__int128 ns)
{
	return ns < 0 ? 0 : ns > INT64_MAX ? INT64_MAX : (u64)ns;
}

u64 clock_ns(const struct clock *c, u64 ticks)
{
	const struct clock_pair *a;

	if (!c->count)
		return clamp(ticks);
	if (c->count == 1)
		return clamp((__int128)c->at->ns + ticks - c->at->ticks);
	a = &c->at[line_of(c, ticks)];
	if (ticks - a[0].ticks <= UINT32_MAX && a[1].ns - a[0].ns <= UINT32_MAX)        /* most lines: without a long division */
		return clamp(a[0].ns + (ticks - a[0].ticks) * (a[1].ns - a[0].ns) / (a[1].ticks - a[0].ticks));
	return clamp(a[0].ns + ((__int128)ticks - a[0].ticks) * (a[1].ns - a[0].ns) / (a[1].ticks - a[0].ticks));
}

u64 clock_ticks(const struct clock *c, u64 ns)
{
	u64 ticks = ns;

	if (c->count > 1)
		ticks = clamp((__int128)ns * (c->at[1].ticks - c->at[0].ticks) / (c->at[1].ns - c->at[0].ns));
	return ticks ? ticks : 1;
}

void clock_release(struct clock *c)
{
	free(c->at);
	*c = (struct clock) { 0 };
}
