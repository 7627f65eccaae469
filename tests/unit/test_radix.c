/* test_radix.c - the order that radix_sort() gives, and that equal keys keep theirs. */
#include "util/radix.h"

#include <stdbool.h>
#include <stdlib.h>

#include "tap.h"

enum { COUNT = 5000 };

static u64 next(u64 *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 8;
}

static bool in_order(const struct ranked *r, u32 count)
{
	for (u32 i = 1; i < count; i++)
		if (r[i - 1].key > r[i].key || (r[i - 1].key == r[i].key && r[i - 1].at > r[i].at))
			return false;
	return true;
}

/* Each key is (a random number & mask) | set, so that some of its bytes are the same in all. */
static void sorted(u32 count, u64 mask, u64 set)
{
	struct ranked *list = malloc((2 * (size_t)count + 1) * sizeof(*list)), *r;
	u8 seen[COUNT] = { 0 };
	u64 state = mask ^ count;
	u32 once = 0;

	for (u32 i = 0; i < count; i++)
		list[i] = (struct ranked){ (next(&state) & mask) | set, i };
	r = radix_sort(list, count);
	for (u32 i = 0; i < count; i++)
		once += !seen[r[i].at]++;
	ok(in_order(r, count) && once == count, "%u keys & %llx | %llx", count, (unsigned long long)mask,
	   (unsigned long long)set);
	free(list);
}

int main(void)
{
	sorted(0, ~0ull, 0);
	sorted(1, ~0ull, 0);
	sorted(2, ~0ull, 0);
	sorted(COUNT, ~0ull, 0);
	sorted(COUNT, 0x3f, 0);
	sorted(COUNT, 0xff00ff, 0x1200000000003400);
	sorted(COUNT, 0, 7);
	sorted(COUNT, ~0ull, 1ull << 63);
	return done();
}
