/*
 * unwind.h - libunwind: the truth that tests compare our own walk with.
 */
#ifndef UNWIND_H
#define UNWIND_H

#include "stack.h"

void unwind_start(void);                        /* opens it; from the constructor, never inside a hook; tests only */
/* Return addresses from the caller outwards, at most `max`; 0 if there is no libunwind. */
u32 unwind_stack(struct caller at, u64 *pc, u32 max);

#endif
