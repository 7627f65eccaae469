/*
 * curve.h - curves that stay small however long the run is, and still show every extreme that matters.
 *
 *   bucket      |  .  ^max .   last|      All curves share one current bucket. When a record comes after its
 *               |min          .    |      end, each curve that moved in it gives its minimum and maximum in
 *               +------------------+      time order, and its last value; then a new bucket begins there,
 *                                         1/10000 of the run so far wide.
 *
 * So the number of points grows with the logarithm of the time, and the highest value is always among them.
 */
#ifndef CURVE_H
#define CURVE_H

#include "session.h"

struct point {
	u64 ticks;
	i64 value;
};

struct curve {
	struct process *process;        /* NULL: the tree */
	enum curve_kind kind;
	struct device *device;          /* else NULL: the memory of this device ... */
	int heap;                       /* ... or of one of its heaps; -1: of all */
	bool touched;                   /* in the current bucket */
	bool begun;                     /* a point was given */
	struct point min, max, last;    /* of the current bucket */
	struct point told;              /* the last one given */
};

struct curves {
	const struct listener *listener;
	u64 start, end;                 /* of the run; of the current bucket */
	u64 least;                      /* width of the narrowest bucket */
	struct curve **touched;
	u32 count, room;
};

/* What a curve did over some records. */
struct swing {
	struct point min, max, last;
};

void curves_close(struct curves *b, u64 ticks);                 /* the bucket; a new one begins at ticks */
void curve_note(struct curves *b, struct curve *c, const struct swing *s, i64 offset);
void curve_tell(struct curves *b, struct curve *c, struct point p);     /* a point, now */
void curve_finish(struct curves *b, struct curve *c, struct point last);        /* the curve ends */

static inline void curves_reach(struct curves *b, u64 ticks)
{
	if (ticks >= b->end)
		curves_close(b, ticks);
}

#endif
