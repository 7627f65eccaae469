/* test_live.c - the table of live blocks against a plain array, through growth, deletion and replacement. */
#include "../../collector/model/live.h"
#include "gen.h"
#include "tap.h"

enum { PLACES = 20000, ROUNDS = 2000000 };

static u64 value_at[PLACES];

static u64 addr_of(u64 i)
{
	return 0x7f0000000000 + i * 16 + (i % 3) * 0x10000000000;
}

static bool toggle(struct live *l, u64 i, u64 round)
{
	u64 value = round + 1;

	if (!value_at[i]) {
		value_at[i] = value;
		return !live_put(l, addr_of(i), &value);
	}
	value = value_at[i];
	if (round % 7 == 0) {                   /* a block where one was already: the old one comes back */
		u64 new = round + 1;

		value_at[i] = new;
		return live_put(l, addr_of(i), &new) && new == value;
	}
	value_at[i] = 0;
	return live_take(l, addr_of(i), &value) && value != 0;
}

static u64 held(void)
{
	u64 i, n = 0;

	for (i = 0; i < PLACES; i++)
		n += value_at[i] != 0;
	return n;
}

int main(void)
{
	struct live l = { 0 };
	u64 seed = 42, i, bad = 0, value, n;

	ok(!live_take(&l, 0x1000, &value), "nothing is found in an empty table");
	for (i = 0; i < ROUNDS; i++)
		bad += !toggle(&l, gen_random(&seed) % (i < ROUNDS / 2 ? 500 : PLACES), i);
	ok(bad == 0, "%d random operations agree", ROUNDS);
	ok(live_count(&l) == held(), "as many blocks as there should be");
	n = live_count(&l);
	ok(live_bytes_held(&l) <= n * 64, "%.1f bytes a live block", (double)live_bytes_held(&l) / (double)n);
	for (i = 0, bad = 0; i < PLACES; i++) {
		bool found = live_take(&l, addr_of(i), &value);

		bad += found != (value_at[i] != 0) || (found && value != value_at[i]);
	}
	ok(bad == 0, "every block has its value");
	ok(live_count(&l) == 0, "and then it is empty");
	live_release(&l);
	return done();
}
