/* test_curve.c - a curve is thinned, and keeps what matters. */
#include "../../collector/model/curve.h"
#include "../../collector/util/array.h"
#include "gen.h"
#include "tap.h"

enum { RECORDS = 3000000, STEP = 40 };

static struct point *told;
static u32 tolds, told_room;

static void hear(void *to, struct process *p, enum curve_kind c, u64 ticks, i64 bytes)
{
	(void)to, (void)p, (void)c;
	ARRAY_ROOM(told, told_room, tolds + 1);
	told[tolds++] = (struct point) { ticks, bytes };
}

static void note(struct curves *b, struct curve *c, u64 t, i64 value)
{
	struct point p = { t, value };
	struct swing s = { p, p, p };

	curves_reach(b, t);
	curve_note(b, c, &s, 0);
}

static bool has(struct point p)
{
	u32 i;

	for (i = 0; i < tolds; i++)
		if (told[i].ticks == p.ticks && told[i].value == p.value)
			return true;
	return false;
}

/* Every extreme of a ten thousandth of the run shows up as a point no farther than that from where it was. */
static u32 extremes_missed(const i64 *value, u32 from, u32 n)
{
	u32 part = n / 100, i, j, k = 0, missed = 0;

	for (i = from; i + part <= n; i += part) {
		i64 most = INT64_MIN, shown = INT64_MIN;

		for (j = i; j < i + part; j++)
			most = value[j] > most ? value[j] : most;
		while (k < tolds && told[k].ticks < (u64)i * STEP)
			k++;
		for (j = k; j < tolds && told[j].ticks < (u64)(i + part) * STEP; j++)
			shown = told[j].value > shown ? told[j].value : shown;
		missed += shown != most;
	}
	return missed;
}

int main(void)
{
	struct listener listener = { .point = hear };
	struct curves b = { .listener = &listener, .least = 10000, .end = 10000 };
	struct curve c = { .kind = CURVE_MALLOC };
	i64 *value = must(malloc(RECORDS * sizeof(*value)));
	struct point peak = { 0, -1 };
	u64 seed = 3;
	i64 now = 0;
	u32 i, bad = 0;

	for (i = 0; i < RECORDS; i++) {
		now += (i64)(gen_random(&seed) % 2001) - 1000;
		now = now < 0 ? 0 : now;
		value[i] = now;
		if (now > peak.value)
			peak = (struct point) { (u64)i * STEP, now };
		note(&b, &c, (u64)i * STEP, now);
	}
	curves_close(&b, (u64)RECORDS * STEP);
	curve_finish(&b, &c, (struct point) { (u64)RECORDS * STEP, now });
	ok(has(peak), "the highest value is there, at its time");
	ok(tolds < 100000, "%u points for %d records", tolds, RECORDS);
	for (i = 1; i < tolds; i++)
		bad += told[i].ticks < told[i - 1].ticks || (told[i].value == told[i - 1].value && i + 1 < tolds);
	ok(bad == 0, "points come in time order and say something new");
	for (i = 0, bad = 0; i < tolds; i++)
		bad += told[i].ticks / STEP < RECORDS && value[told[i].ticks / STEP] != told[i].value;
	ok(bad == 0, "every point was true at its time");
	ok(extremes_missed(value, 0, RECORDS) == 0, "the maximum of every hundredth is there");
	ok(told[tolds - 1].value == now && told[tolds - 1].ticks == (u64)RECORDS * STEP, "the last value ends the curve");
	i = tolds;
	note(&b, &c, (u64)RECORDS * STEP * 1000, 5);
	curves_close(&b, (u64)RECORDS * STEP * 1001);
	ok(tolds - i == 1, "an hour of nothing costs nothing");
	free(value);
	free(told);
	free(b.touched);
	return done();
}
