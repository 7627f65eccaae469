/*
 * devices_inside.h - what the model keeps of a process's devices while it runs.
 *
 *   names, sites     number -> text, number -> stack
 *   devs, ques       number -> device, queue
 *   works            number -> work in flight: described, ended, its call seen - in any order; with all three it is ready
 *   dev.ready        ... and waits there until its device's clock is known well enough and its neighbours are there
 *   memories         number -> device memory that lives
 */
#ifndef DEVICES_INSIDE_H
#define DEVICES_INSIDE_H

#include "curve.h"
#include "device_clock.h"
#include <uthash.h>

struct known_text {                     /* a text, once */
	UT_hash_handle hh;
	char text[];
};

struct name_index {
	u64 id;
	const char *text;
	UT_hash_handle hh;
};

struct site_index {
	u64 id;
	u32 node;
	UT_hash_handle hh;
};

struct kernel_index {
	const char *name;               /* a known_text: the pointer says it all */
	u32 at;
	UT_hash_handle hh;
};

struct open_work {
	struct work w;
	bool described, ended, called;
	UT_hash_handle hh;
};

/* What lay in an allocation and is gone, beside what still lies there. */
struct gone_list {
	struct bound *at;
	u32 count, room;
};

struct used_list {
	struct used_range *at;
	u32 count, room;
	u64 more;
	bool looked;
};

struct open_memory {
	struct device_memory m;         /* first */
	u32 row;
	char *text, *label;
	struct open_memory *inside, *next, *prev;       /* what lies in it; siblings */
	struct open_memory *in;
	struct gone_list gone;
	u64 bounds;
	struct used_list used;
	UT_hash_handle hh;
};

/* Rows of a device's memory when it was at its peak; see books.c. */
struct mark {
	u64 at;
	bool settled;
};

struct held {                           /* by a row, at a peak */
	i64 bytes, blocks;
};

/* Stretches of time in which something ran, the newest ones: what comes a little out of order still counts once. */
enum { BUSY_STRETCHES = 16 };

struct busy {
	struct { u64 start, end; } at[BUSY_STRETCHES];
	u32 count;
};

struct dev {
	struct device d;                /* first: struct device * is struct dev * */
	struct device_fit fit;
	u64 pairs;                      /* readings of its clock */
	u32 stretches;                  /* of the clock, since work was last placed */
	struct open_work **ready;
	u32 readys, ready_room;
	struct kernel_index *by_name;
	u32 kernel_room;
	struct busy busy, busy_host;    /* in the device's time, in the host's */
	struct curve curve, *heap_curve;        /* heap_curve: HEAPS_MAX, once a second heap is used */
	struct mark mark;
	struct held *peak;
	u32 peak_rows;
	UT_hash_handle hh;
};

struct que {
	struct queue q;                 /* first */
	UT_hash_handle hh;
};

struct recent_call {
	u64 work, works, begin_ns, end_ns;
};

enum { RECENT_CALLS = 16 };

struct devices {
	struct known_text *texts;
	struct name_index *names;
	struct site_index *sites;
	struct dev *devs;
	struct que *ques;
	struct open_work *works;
	struct open_memory *memories;
	struct recent_call recent[RECENT_CALLS];        /* those that caused work */
	u32 recents;
	u64 may_look;                   /* for so many works of calls; see works_called() */
	u32 orphans;                    /* works that have ended, but whose call was not seen */
	u32 device_room;
};

#endif
