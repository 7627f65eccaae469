/*
 * turn.h - what `run` and `collect` have in common: opening a recording, waiting in turns, and its end.
 */
#ifndef TURN_H
#define TURN_H

#include "output.h"
#include "record.h"

/* NULL: it could not be, and that was said. */
struct recording *turn_open(const struct settings *set, char *const *command, const char *library,
			    const struct output *output, u32 bare_pid);
void turn_finish(struct recording *r, struct output *output, const struct settings *set);       /* all files and the summary */
void turn_own_limits(void);             /* priority, number of descriptors, 0 to 2 filled: after the program's fork */
u64 turn_now_ms(void);
int turn_least(int a_ms, int b_ms);     /* of two poll() times, where -1 is for ever */

#endif
