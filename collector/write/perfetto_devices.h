/*
 * perfetto_devices.h - the tracks of devices, shared by the files that write on them.
 *
 *   process
 *     thread ...                     calls into APIs                              perfetto_work.c
 *     Devices, Libraries             (groups)                                     perfetto_devices.c
 *       OpenCL 0: name               (group)
 *         Memory, heap N             counters
 *         Allocations, Objects       lanes, a slice from birth to death           perfetto_memory.c
 *         queue N                    lanes, a slice for each piece of work        perfetto_work.c
 *     Counters                       (group) what probes read
 *
 * All slices of a process are on one sequence, whose stacks get their names at the end of the file.
 */
#ifndef PERFETTO_DEVICES_H
#define PERFETTO_DEVICES_H

#include "perfetto.h"

enum { LANES_MAX = 64, SLICES_MAX = 6000000 };

/* Bars that come in order of their start. */
struct work_lane {
	u64 track;
	u64 start_ns, end_ns;           /* of its last bar */
	u64 device_end;                 /* in the device's time; 0: unknown */
};

struct queue_tracks {
	struct queue_tracks *next;      /* of this process */
	u64 parent;                     /* uuid of the device */
	int rank;
	char *name;
	struct work_lane lane[LANES_MAX];
	u32 lanes;
	struct work_lane *whole;        /* where the last group is */
	u32 unfinished;                 /* drawn */
	u64 more;                       /* not drawn one by one */
	u64 more_since, more_until;     /* ns */
};

/* Bars that are begun before their end is known: a lane is free or it is not. */
struct free_lanes {
	u64 *track;                     /* those that are free, the last one given back on top */
	u32 count, room;
	u32 made;
};

struct device_tracks {
	u64 track;                      /* uuid; 0: not yet described */
	u64 memory, heap[HEAPS_MAX];
	struct free_lanes allocations, objects;
};

struct process_devices {
	const struct process *process;
	struct stacks *stacks;
	struct arg_keys keys;
	u32 sequence;
	bool begun;
	u64 group[2], counters;         /* "Devices", "Libraries"; "Counters" */
	u64 nobody;                     /* calls of a thread that nobody knows */
	struct counter_track *counter;  /* by name */
	struct device_tracks *device;   /* by index */
	u32 devices;
	struct queue_tracks *queues;
	u64 slices;
	u64 memories;
};

/* A slice being written. */
struct slice {
	struct perfetto *w;
	struct process_devices *of;
	struct enc *e;
	size_t mark;
};

struct process_devices *devices_of(struct perfetto *w, const struct process *p);        /* NULL: no memory */
struct device_tracks *device_tracks(struct perfetto *w, struct process_devices *of, const struct device *d);
bool slice_counts(struct perfetto *w, struct process_devices *of);       /* false: there are too many, and one more is missing */
struct slice slice_begin(struct perfetto *w, struct process_devices *of, u64 ns, u64 track, const char *category, const char *name);
void slice_open(struct slice *s);               /* what was said so far is written; the slice goes on */
struct slice slice_moment(struct perfetto *w, struct process_devices *of, u64 ns, u64 track, const char *category, const char *name);
struct slice slice_end(struct perfetto *w, struct process_devices *of, u64 ns, u64 track);

void works_finish(struct perfetto *w, struct process_devices *of);
void memory_release(struct device_tracks *k);

#endif
