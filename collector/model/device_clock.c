/*
 * device_clock.c - see device_clock.h.
 */
#include "device_clock.h"
#include "../util/array.h"
#include <math.h>

#define STRETCH_NS 100000000ull
#define SLOPE_MAX 1e-3                  /* no clock is worse */
#define SLOPE_SURE 20e-6                /* a choice of slopes that is this narrow is as good as one */
#define KNOWN_SLACK_NS 1000             /* ticks become ns with an error of their own */

enum { SEARCH_STEPS = 80 };

static struct fit_stretch *stretch_of(struct device_fit *f, u64 device, bool *begins)
{
	struct fit_stretch *s;

	if (!f->stretch)
		f->stretch = new_zeroed(FIT_STRETCHES, sizeof(*f->stretch));
	s = &f->stretch[(f->count - 1) % FIT_STRETCHES];
	*begins = !f->count || (device > s->since && device - s->since >= STRETCH_NS);
	if (*begins) {
		s = &f->stretch[f->count++ % FIT_STRETCHES];
		*s = (struct fit_stretch) { .since = device };
	}
	return s;
}

bool fit_add(struct device_fit *f, u64 device, u64 low_ns, u64 high_ns)
{
	struct fit_bound low = { device, (i64)(low_ns - device), low_ns != FIT_NO_LOW };
	struct fit_bound high = { device, (i64)(high_ns - device), high_ns != FIT_NO_HIGH };
	struct fit_stretch *s;
	bool begins;

	if (device >> 63 || (!low.set && !high.set) || (low.set && high.set && low_ns > high_ns))
		return false;
	s = stretch_of(f, device, &begins);
	if (low.set && (!s->low.set || low.off > s->low.off))
		s->low = low;
	if (high.set && (!s->high.set || high.off < s->high.off))
		s->high = high;
	if (low.set && high.set && (!f->tightest || high_ns - low_ns < f->tightest))
		f->tightest = high_ns - low_ns;
	f->samples++;
	return begins;
}

/* ---- the line --------------------------------------------------------------------------- */

/* Bounds of the window, relative to the first: x in ns of the device, y in ns off. */
struct corridor {
	u64 at;
	i64 off;
	struct { double x, y; } low[FIT_STRETCHES], high[FIT_STRETCHES];
	u32 lows, highs;
};

static double relative_x(const struct corridor *c, u64 at)
{
	return (double)(i64)(at - c->at);
}

static double relative_y(const struct corridor *c, i64 off)
{
	return (double)(i64)((u64)off - (u64)c->off);
}

static void corridor_of(const struct device_fit *f, struct corridor *c)
{
	u32 n = f->count < FIT_STRETCHES ? f->count : FIT_STRETCHES, i;
	const struct fit_stretch *newest = &f->stretch[(f->count - 1) % FIT_STRETCHES];
	const struct fit_bound *origin = newest->high.set ? &newest->high : &newest->low;

	*c = (struct corridor) { .at = origin->at, .off = origin->off };
	for (i = 0; i < n; i++) {
		const struct fit_stretch *s = &f->stretch[i];

		if (s->low.set) {
			c->low[c->lows].x = relative_x(c, s->low.at);
			c->low[c->lows++].y = relative_y(c, s->low.off);
		}
		if (s->high.set) {
			c->high[c->highs].x = relative_x(c, s->high.at);
			c->high[c->highs++].y = relative_y(c, s->high.off);
		}
	}
}

/* Between which two offsets a line of this slope runs; the width is negative where there is none. */
static double width(const struct corridor *c, double slope, double *bottom)
{
	double low = c->low[0].y - slope * c->low[0].x, high = c->high[0].y - slope * c->high[0].x, v;
	u32 i;

	for (i = 1; i < c->lows; i++) {
		v = c->low[i].y - slope * c->low[i].x;
		low = v > low ? v : low;
	}
	for (i = 1; i < c->highs; i++) {
		v = c->high[i].y - slope * c->high[i].x;
		high = v < high ? v : high;
	}
	*bottom = low;
	return high - low;
}

/* The width is a concave function of the slope. */
static double widest(const struct corridor *c)
{
	double a = -SLOPE_MAX, b = SLOPE_MAX, bottom;
	int i;

	for (i = 0; i < SEARCH_STEPS; i++) {
		double third = (b - a) / 3;

		if (width(c, a + third, &bottom) < width(c, b - third, &bottom))
			a += third;
		else
			b -= third;
	}
	return (a + b) / 2;
}

/* How far a slope can be moved from the widest one towards `end` until no line is left. */
static double edge(const struct corridor *c, double best, double end)
{
	double good = best, bad = end, bottom;
	int i;

	if (width(c, end, &bottom) >= 0)
		return end;
	for (i = 0; i < SEARCH_STEPS; i++) {
		double mid = (good + bad) / 2;

		if (width(c, mid, &bottom) >= 0)
			good = mid;
		else
			bad = mid;
	}
	return good;
}

/* Where bounds leave a wide choice of slopes, as they do when they span little time, the one that was there before. */
static double slope_of(const struct corridor *c, double before)
{
	double best = widest(c), bottom, low, high;

	if (width(c, best, &bottom) < 0)
		return best;
	low = edge(c, best, -SLOPE_MAX);
	high = edge(c, best, SLOPE_MAX);
	if (high - low < SLOPE_SURE)
		return best;
	return before < low ? low : before > high ? high : before;
}

static i64 whole(double v)
{
	return v >= 9e18 ? (i64)9e18 : v <= -9e18 ? (i64)-9e18 : (i64)(v < 0 ? v - 0.5 : v + 0.5);
}

/* Bounds from one side alone would let many a clock pass. */
static bool is_known(const struct corridor *c, i64 off)
{
	double y = relative_y(c, off);
	u32 i;

	if (!c->lows || !c->highs)
		return false;
	for (i = 0; i < c->lows; i++)
		if (y < c->low[i].y - KNOWN_SLACK_NS)
			return false;
	for (i = 0; i < c->highs; i++)
		if (y > c->high[i].y + KNOWN_SLACK_NS)
			return false;
	return true;
}

static void two_sided(struct device_fit *f, const struct corridor *c)
{
	double slope = slope_of(c, f->slope), bottom, w = width(c, slope, &bottom), off = fabs(w) / 2, least = (double)f->tightest / 2;

	f->slope = slope;
	f->off = (i64)((u64)c->off + (u64)whole(bottom + w / 2));
	f->residual = (u64)whole(off > least ? off : least);
}

/* Bounds from one side only: as near to them as may be. */
static void one_sided(struct device_fit *f, const struct corridor *c)
{
	double y = c->lows ? c->low[0].y : c->high[0].y;
	u32 i;

	for (i = 1; i < c->lows; i++)
		y = c->low[i].y > y ? c->low[i].y : y;
	for (i = 1; i < c->highs; i++)
		y = c->high[i].y < y ? c->high[i].y : y;
	f->slope = 0;
	f->off = (i64)((u64)c->off + (u64)whole(y));
}

void fit_line(struct device_fit *f)
{
	struct corridor c;
	u32 i;

	if (!f->count)
		return;
	corridor_of(f, &c);
	f->at = c.at;
	f->match = MATCH_LINE;
	f->residual = 0;
	for (i = 0; i < f->knowns; i++) {
		if (!is_known(&c, f->known[i]))
			continue;
		f->match = MATCH_MONOTONIC + i;
		f->off = f->known[i];
		f->slope = 0;
		return;
	}
	if (c.lows && c.highs)
		two_sided(f, &c);
	else
		one_sided(f, &c);
}

u64 fit_ns(const struct device_fit *f, u64 device)
{
	double bent = f->slope * (double)(i64)(device - f->at);
	u64 ns = device + (u64)f->off + (u64)whole(bent);

	return ns >> 63 ? 0 : ns;
}

void fit_release(struct device_fit *f)
{
	free(f->stretch);
	f->stretch = NULL;
	f->count = 0;
}
