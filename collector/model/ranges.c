/*
 * ranges.c - a sorted array of ranges; neighbours of one mapping are kept as one.
 */
#include "ranges.h"
#include "../util/array.h"

/* Index of the first range that ends after addr. */
static u32 first_after(const struct ranges *r, u64 addr)
{
	u32 low = 0, high = r->count;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (r->at[mid].end > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Replaces `gone` ranges from `at` on by nothing, or makes room for -gone. */
static void shift(struct ranges *r, u32 at, int gone)
{
	ARRAY_ROOM(r->at, r->room, r->count + 2);
	if (gone > 0)
		memmove(&r->at[at], &r->at[at + gone], (r->count - at - gone) * sizeof(*r->at));
	else
		memmove(&r->at[at - gone], &r->at[at], (r->count - at) * sizeof(*r->at));
	r->count -= gone;
}

static void split(struct ranges *r, u32 i, u64 where)
{
	if (i >= r->count || r->at[i].start >= where || r->at[i].end <= where)
		return;
	shift(r, i, -1);
	r->at[i] = r->at[i + 1];
	r->at[i].end = r->at[i + 1].start = where;
}

u32 ranges_cut(struct ranges *r, u64 start, u64 end)
{
	u32 first, n = 0;

	split(r, first_after(r, start), start);
	split(r, first_after(r, end), end);
	first = first_after(r, start);
	while (first + n < r->count && r->at[first + n].start < end)
		n++;
	if (!n)
		return 0;
	ARRAY_ROOM(r->piece, r->piece_room, n);
	memcpy(r->piece, &r->at[first], n * sizeof(*r->at));
	shift(r, first, (int)n);
	return n;
}

bool ranges_put(struct ranges *r, struct range piece)
{
	u32 i = first_after(r, piece.start);
	bool joins_left = i && r->at[i - 1].end == piece.start && r->at[i - 1].of == piece.of;
	bool joins_right = i < r->count && r->at[i].start == piece.end && r->at[i].of == piece.of;

	if (joins_left && joins_right) {
		r->at[i - 1].end = r->at[i].end;
		shift(r, i, 1);
	} else if (joins_left) {
		r->at[i - 1].end = piece.end;
	} else if (joins_right) {
		r->at[i].start = piece.start;
	} else {
		if (r->count >= RANGES_MAX)
			return false;
		shift(r, i, -1);
		r->at[i] = piece;
	}
	return true;
}

const struct range *ranges_find(const struct ranges *r, u64 addr)
{
	u32 i = first_after(r, addr);

	return i < r->count && r->at[i].start <= addr ? &r->at[i] : NULL;
}

void ranges_release(struct ranges *r)
{
	free(r->at);
	free(r->piece);
	*r = (struct ranges) { 0 };
}
