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

/* Every other time the quick way is tried first. */
static bool take(struct live *l, u64 addr, u64 *value, u64 round)
{
	*value = 0;
	return (round & 1 && live_turn(l, addr, true, value, UINT64_MAX)) || live_take(l, addr, value);
}

static bool put(struct live *l, u64 addr, u64 *value, u64 round)
{
	return !(round & 1 && live_turn(l, addr, false, value, UINT64_MAX)) && live_put(l, addr, value);
}

static bool toggle(struct live *l, u64 i, u64 round)
{
	u64 value = round + 1;

	if (!value_at[i]) {
		value_at[i] = value;
		return !put(l, addr_of(i), &value, round);
	}
	if (round % 7 == 0) {                   /* a block where one was already: the old one comes back */
		u64 old = value_at[i];

		value_at[i] = value;
		return put(l, addr_of(i), &value, round) && value == old && !live_lacks(l, addr_of(i));
	}
	if (!take(l, addr_of(i), &value, round) || value != value_at[i])
		return false;
	value_at[i] = 0;
	return true;
}

/* Blocks whose own group is the same, far more than fit there. */
static void crowd(void)
{
	struct live l = { 0 };
	u64 addr, n = 0, missing = 0, held = 0, value;

	for (addr = 0; n < 5000; addr += 8)
		if (live_hash(addr) >> 50 == 0 && ++n)
			missing += live_put(&l, addr, &(u64) { addr });
	ok(missing == 0 && live_count(&l) == n, "a crowd in one group all find a place");
	ok(live_bytes_held(&l) <= n * 64, "%.1f bytes a block", (double)live_bytes_held(&l) / (double)n);
	for (held = addr, addr = 0; addr < held; addr += 8)
		if (live_hash(addr) >> 50 == 0)
			missing += !live_take(&l, addr, &value) || value != addr;
	ok(missing == 0 && live_count(&l) == 0, "and are found again");
	live_release(&l);
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
	crowd();
	return done();
}
