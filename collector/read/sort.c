/*
 * sort.c - few runs are merged pair by pair without a branch; many are thrown into buckets of time first.
 *
 * Buckets are as many as keys, so that each holds about one and an insertion sort has next to nothing to do.
 * Where time is lumpy that would be slow, and pairs are merged instead.
 */
#include "sort.h"
#include "../util/array.h"
#include <stdbool.h>

enum { FEW_RUNS = 4, LUMP = 48 };

/*
 * From both ends at once: two chains of steps that do not wait for each other. No two keys are equal, so they agree; and
 * each goes half as far as the shorter run is long, so neither looks beyond a run.
 */
static void merge_pair(const u64 *x, const u64 *x_end, const u64 *y, const u64 *y_end, u64 *out)
{
	u64 *out_end = out + (x_end - x) + (y_end - y);

	while (x < x_end && y < y_end) {
		long i, steps = ((x_end - x < y_end - y ? x_end - x : y_end - y) + 1) / 2;

		for (i = 0; i < steps; i++) {
			u64 a = *x, b = *y, c = x_end[-1], d = y_end[-1];
			long second = b < a, last = d < c;

			*out++ = a ^ ((a ^ b) & -(u64)second);          /* so written, it is no branch */
			y += second;
			x += 1 - second;
			*--out_end = d ^ ((c ^ d) & -(u64)last);
			x_end -= last;
			y_end -= 1 - last;
		}
	}
	memcpy(out, x, (char *)x_end - (char *)x);
	memcpy(out + (x_end - x), y, (char *)y_end - (char *)y);
}

static void merge_two(const u64 *key, u64 *out, u32 a, u32 b, u32 end)
{
	if (b == end || key[b - 1] < key[b])
		memcpy(out + a, key + a, (end - a) * sizeof(*key));
	else
		merge_pair(key + a, key + b, key + b, key + end, out + a);
}

static u64 *merge_pairs(u64 *key, u64 *other, u32 *start, u32 runs)
{
	while (runs > 1) {
		u32 i, left = 0, end = start[runs];
		u64 *swap = key;

		for (i = 0; i < runs; i += 2) {
			merge_two(key, other, start[i], i + 1 < runs ? start[i + 1] : end, i + 2 < runs ? start[i + 2] : end);
			start[left++] = start[i];
		}
		start[left] = end;
		runs = left;
		key = other;
		other = swap;
	}
	return key;
}

static u64 largest(const u64 *key, const u32 *start, u32 runs)
{
	u64 most = 0;
	u32 i;

	for (i = 0; i < runs; i++)
		if (key[start[i + 1] - 1] > most)
			most = key[start[i + 1] - 1];
	return most;
}

/* Counts keys in buckets and turns counts into places. False: too many fell into one. */
static bool count(const u64 *key, u32 n, u32 *place, u32 buckets, u32 shift)
{
	u32 i, sum = 0, most = 0;

	memset(place, 0, buckets * sizeof(*place));
	for (i = 0; i < n; i++)
		place[key[i] >> shift]++;
	for (i = 0; i < buckets; i++) {
		u32 here = place[i];

		place[i] = sum;
		sum += here;
		most = here > most ? here : most;
	}
	return most <= LUMP;
}

static void insertion_sort(u64 *key, u32 n)
{
	u32 i, j;

	for (i = 1; i < n; i++) {
		u64 k = key[i];

		for (j = i; j && key[j - 1] > k; j--)
			key[j] = key[j - 1];
		key[j] = k;
	}
}

static u64 *throw_in_buckets(u64 *key, u64 *other, const u32 *start, u32 runs, u32 time_shift)
{
	static u32 *place;
	static u32 room;
	u32 n = start[runs], shift = time_shift, i;
	u64 most = largest(key, start, runs);

	while (most >> shift >= n)
		shift++;
	ARRAY_ROOM(place, room, (most >> shift) + 1);
	if (!count(key, n, place, (u32)(most >> shift) + 1, shift))
		return NULL;
	for (i = 0; i < n; i++)
		other[place[key[i] >> shift]++] = key[i];
	insertion_sort(other, n);
	return other;
}

u64 *sort_runs(u64 *key, u64 *other, u32 *start, u32 runs, u32 time_shift)
{
	u64 *sorted = NULL;

	if (runs > FEW_RUNS)
		sorted = throw_in_buckets(key, other, start, runs, time_shift);
	return sorted ? sorted : merge_pairs(key, other, start, runs);
}
