/*
 * ranges.h - what the program mapped: address ranges that never overlap, in order.
 *
 * Two operations make all the others: cut a range out (and get the pieces), put a piece in.
 */
#ifndef RANGES_H
#define RANGES_H

#include <mlprof/wire.h>
#include <stdbool.h>

/* One call that brought memory, as long as a byte of it is left. */
struct mapping {
	u64 id;
	u32 row, pool;
	u64 bytes;
};

struct range {
	u64 start, end;
	struct mapping *of;             /* NULL: anonymous and not accessible */
};

enum { RANGES_MAX = 1 << 17 };

struct ranges {
	struct range *at;
	u32 count, room;
	struct range *piece;            /* of the last cut */
	u32 piece_room;
};

/* Removes [start, end). Returns the number of pieces, which lie in r->piece until the next cut. */
u32 ranges_cut(struct ranges *r, u64 start, u64 end);
/* Puts a range where nothing is. False: there are too many. */
bool ranges_put(struct ranges *r, struct range piece);
/* The range that holds addr, or NULL. */
const struct range *ranges_find(const struct ranges *r, u64 addr);
void ranges_release(struct ranges *r);

#endif
