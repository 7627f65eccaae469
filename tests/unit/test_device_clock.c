/*
 * test_device_clock.c - a device's clock by its bounds: offsets, drift, drift that changes, clocks that are known, nonsense.
 */
#include "../../collector/model/device_clock.h"
#include "gen.h"
#include "tap.h"

#include <math.h>

enum { US = 1000, MS = 1000000 };
#define S 1000000000ull

static struct device_fit new_fit(void)
{
	return (struct device_fit) { .knowns = 3, .known = { 0, -5 * (i64)S, -1000000 * (i64)S } };
}

static u64 error_at(const struct device_fit *f, u64 device, u64 host)
{
	u64 ns = fit_ns(f, device);

	return ns > host ? ns - host : host - ns;
}

/* A stamp somewhere inside of a call of 2 to 12 us, every 100 us, on a clock that is off by `offset` and by `ppm`. */
static u64 bounded(double ppm, u64 offset, u64 seconds, u64 *residual, double *found)
{
	struct device_fit f = new_fit();
	u64 seed = 99, worst = 0, t;

	for (t = S; t < (1 + seconds) * S; t += 100 * US) {
		u64 length = 2 * US + gen_random(&seed) % (10 * US), at = t + gen_random(&seed) % length;
		u64 device = (u64)((double)at * (1 + ppm * 1e-6)) + offset;

		fit_add(&f, device, t, t + length);
		if (t % (50 * MS) == 0 && t > S + 20 * MS) {
			fit_line(&f);
			u64 off = error_at(&f, device, at);

			worst = off > worst ? off : worst;
		}
	}
	*residual = f.residual;
	*found = f.slope * 1e6;
	fit_release(&f);
	return worst;
}

static void bounds(void)
{
	u64 residual, worst = bounded(0, 777 * S, 3, &residual, &(double) { 0 });
	double ppm;

	ok(worst < 3 * US, "bounds alone: %llu ns off at most", (unsigned long long)worst);
	ok(residual < 3 * US, "and it says so: %llu ns", (unsigned long long)residual);
	worst = bounded(100, 3 * S, 20, &residual, &ppm);
	ok(worst < 6 * US, "100 ppm of drift: %llu ns off", (unsigned long long)worst);
	ok(fabs(ppm + 100) < 5, "found: %.2f ppm", ppm);
	worst = bounded(-500, 3 * S, 20, &residual, &ppm);
	ok(worst < 20 * US && fabs(ppm - 500) < 5, "-500 ppm: %llu ns off", (unsigned long long)worst);
}

/* Readings of both clocks, 2 us apart, as a driver gives them; the drift itself changes from +50 to -50 ppm. */
static void readings(void)
{
	struct device_fit f = new_fit();
	double device = 5e12;
	u64 seed = 5, worst = 0, t;

	for (t = S; t < 60 * S; t += 10 * MS) {
		double ppm = t < 30 * S ? 50 : -50;

		device += 10 * MS * (1 + ppm * 1e-6);
		fit_add(&f, (u64)device, t - gen_random(&seed) % US, t + gen_random(&seed) % US);
		if (t % (100 * MS) || (t > 29 * S && t < 37 * S))
			continue;
		fit_line(&f);
		u64 off = error_at(&f, (u64)device, t);

		worst = off > worst && t > 2 * S ? off : worst;
	}
	ok(worst < 2 * US, "a drift that changes is followed: %llu ns off", (unsigned long long)worst);
	ok(fabs(f.slope * 1e6 - 50) < 2, "%.2f ppm at the end", f.slope * 1e6);
	fit_release(&f);
}

static void known(void)
{
	static const struct { u64 offset; enum clock_match match; const char *name; } clock[] = {
		{ 0, MATCH_MONOTONIC, "CLOCK_MONOTONIC" }, { 5 * S, MATCH_BOOTTIME, "CLOCK_BOOTTIME" },
		{ 1000000 * S, MATCH_REALTIME, "CLOCK_REALTIME" },
	};

	for (u32 i = 0; i < 3; i++) {
		struct device_fit f = new_fit();
		u64 t;

		for (t = S; t < 2 * S; t += MS)
			fit_add(&f, t + 3 * US + clock[i].offset, t, t + 10 * US);
		fit_line(&f);
		ok(f.match == clock[i].match && fit_ns(&f, 12345678901 + clock[i].offset) == 12345678901, "%s is known when it is met", clock[i].name);
		fit_release(&f);
	}
}

static void little(void)
{
	struct device_fit f = new_fit();

	fit_line(&f);
	ok(f.match == MATCH_NONE && fit_ns(&f, 17) == 17, "nothing known: times stay as they are");
	fit_add(&f, 500 * S, S, S + 8 * US);
	fit_line(&f);
	ok(error_at(&f, 500 * S, S + 4 * US) <= 1 && f.residual == 4 * US, "one sample is enough for an offset");
	ok(error_at(&f, 501 * S, 2 * S + 4 * US) <= 1, "and gives no slope");
	fit_release(&f);
	f = new_fit();
	fit_add(&f, 500 * S, S, FIT_NO_HIGH);
	fit_add(&f, 500 * S + MS, S + MS + 5 * US, FIT_NO_HIGH);
	fit_line(&f);
	ok(error_at(&f, 500 * S, S + 5 * US) <= 1, "bounds from one side: as near as may be");
	fit_release(&f);
	f = new_fit();
	fit_add(&f, 500 * S, S, 1 * S + 100 * MS);
	fit_add(&f, 500 * S + 200 * MS, S + 200 * MS, S + 202 * MS);
	fit_line(&f);
	ok(f.residual == MS, "a wide bound does not spoil a narrow one");
	fit_release(&f);
	f = new_fit();
	for (u64 t = 0; t <= 60 * MS; t += 20 * MS)
		fit_add(&f, 500 * S + t + t / 5000, S + t - 200, S + t + 200);
	fit_line(&f);
	ok(error_at(&f, 500 * S + 30 * MS + 6 * US, S + 30 * MS) < 200 && f.residual >= 200, "200 ppm in 60 ms: no surer than its readings, %llu ns",
	   (unsigned long long)f.residual);
	fit_release(&f);
}

static void nonsense(void)
{
	struct device_fit f = new_fit();
	u64 seed = 3, sum = 0;

	for (u32 i = 0; i < 100000; i++) {
		u64 device = gen_random(&seed), low = gen_random(&seed), high = gen_random(&seed);

		fit_add(&f, i & 1 ? device : device >> (device & 63), i & 2 ? low : low >> (low & 63), i & 4 ? high : high >> (high & 63));
		if (i % 100 == 0)
			fit_line(&f);
		sum += fit_ns(&f, device) >> 63;
	}
	ok(!sum, "any numbers: never a time beyond 2^63");
	fit_release(&f);
}

int main(void)
{
	bounds();
	readings();
	known();
	little();
	nonsense();
	return done();
}
