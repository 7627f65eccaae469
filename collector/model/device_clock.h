/*
 * device_clock.h - a device's clock against the host's, by bounds.
 *
 * All that is known of a device's clock is of one form: when it showed `device`, the host's clock was between `low` and
 * `high`. A reading of both clocks is such a pair of bounds, and so is a stamp that the driver took inside of a call.
 *
 *    host - device
 *      |   v     v  v        v    upper bounds         The line goes through the middle of the corridor; its slope is
 *      |-------------------------                      the one that leaves the corridor widest, as soon as the bounds
 *      |  ^    ^       ^   ^      lower bounds         span enough time to tell.
 *      +------------------------- device
 *
 * Only the tightest bounds of each stretch of time are kept, and only of the last FIT_STRETCHES stretches: clocks drift,
 * and the drift changes.
 */
#ifndef DEVICE_CLOCK_H
#define DEVICE_CLOCK_H

#include "devices.h"

enum { FIT_STRETCHES = 64, FIT_KNOWN = 3 };

struct fit_bound {
	u64 at;                         /* device */
	i64 off;                        /* host - device */
	bool set;
};

struct fit_stretch {
	u64 since;
	struct fit_bound low, high;
};

struct device_fit {
	struct fit_stretch *stretch;    /* FIT_STRETCHES, once there is a bound */
	u32 count;                      /* stretches ever begun */
	u64 samples;
	u64 tightest;                   /* distance of two bounds of one moment: no line can be surer than half of that */
	i64 known[FIT_KNOWN];           /* host - clock, of clocks that it may turn out to be; in order of enum clock_match */
	u32 knowns;

	/* the line: host = device + off + slope * (device - at) */
	u64 at;
	i64 off;
	double slope;
	enum clock_match match;
	u64 residual;
};

#define FIT_NO_LOW  0
#define FIT_NO_HIGH UINT64_MAX

/* True: a stretch begins with this one. */
bool fit_add(struct device_fit *f, u64 device, u64 low_ns, u64 high_ns);
void fit_line(struct device_fit *f);            /* through what is known by now */
u64 fit_ns(const struct device_fit *f, u64 device);
void fit_release(struct device_fit *f);

#endif
