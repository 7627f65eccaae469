/*
 * radix.c - one pass for each byte of the keys, lowest first. Bytes that are the same in all keys take none, so that
 * sizes of blocks need two or three.
 */
#include "radix.h"
#include <string.h>

enum { BYTES = sizeof(u64), VALUES = 256 };

static void count_values(const struct ranked *list, u32 count, u32 (*seen)[VALUES])
{
	memset(seen, 0, BYTES * sizeof(*seen));
	for (u32 i = 0; i < count; i++)
		for (u32 byte = 0; byte < BYTES; byte++)
			seen[byte][list[i].key >> byte * 8 & 0xff]++;
}

static void pass(const struct ranked *from, struct ranked *to, u32 count, u32 shift, u32 *seen)
{
	for (u32 value = 0, sum = 0; value < VALUES; value++) {
		u32 here = seen[value];

		seen[value] = sum;
		sum += here;
	}
	for (u32 i = 0; i < count; i++)
		to[seen[from[i].key >> shift & 0xff]++] = from[i];
}

struct ranked *radix_sort(struct ranked *list, u32 count)
{
	struct ranked *other = list + count;
	u32 seen[BYTES][VALUES];

	count_values(list, count, seen);
	for (u32 byte = 0; byte < BYTES && count; byte++) {
		struct ranked *from = list;

		if (seen[byte][list[0].key >> byte * 8 & 0xff] == count)
			continue;
		pass(from, other, count, byte * 8, seen[byte]);
		list = other;
		other = from;
	}
	return list;
}
