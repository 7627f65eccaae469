/*
 * slots.h - places in shared memory, and the private contexts that belong to them.
 *
 *   image (wiped by fork) --> segment files "PID.BORN.INDEX", 64 slots each, shared with the collector
 *                        `--> a context for each slot that was ever used
 */
#ifndef SLOTS_H
#define SLOTS_H

#include "context.h"

enum { SEGMENTS = 256, SLOTS = SEGMENTS * SEGMENT_SLOTS };

/* This process image. fork wipes it, however it is done, so `pid` 0 means that we have to begin. */
struct image {
	u32 pid;
	u32 slots;                              /* ever used */
	u64 born;
	u32 segment_lock;
	struct segment *segment[SEGMENTS];
	struct context *context[SLOTS];
};

extern struct image *image;

void *slots_memory(size_t n);                           /* zeroed, and zero again after a fork */
bool slots_start(void);                                 /* the first segment of a new image */
struct context *slots_take(u32 tid, bool *fresh);       /* NULL: none to be had, counted */
void slots_watch_thread_end(struct context *c);

#endif
