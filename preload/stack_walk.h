/*
 * stack_walk.h - from frame to frame outwards.
 */
#ifndef STACK_WALK_H
#define STACK_WALK_H

#include "stack.h"

struct walk {
	u32 first, slots;               /* what was read: in the arena, not yet kept */
	u64 chain;                      /* hash of the whole stack */
	struct path outside;            /* of a known stack that was joined; no slots: none was */
	bool uses_bp;                   /* the caller's own rbp belongs to what was read */
	bool foreign;                   /* not on the thread's own stack: nothing may be kept */
	bool guessed;                   /* went through code without CFI: not kept either */
	bool cut;                       /* did not come to the outermost frame */
};

/* There must be room for STACK_SLOTS in the arena. */
struct walk stack_walk(struct context *c, struct caller at);

#endif
