/*
 * pipe.h - the FIFO to the collector.
 */
#ifndef PIPE_H
#define PIPE_H

#include "guest.h"

bool pipe_open(void);
/* Sends whole chunks; waits while the pipe is full unless told to drop. Returns how many went; *waited grows
 * by the ticks spent waiting. */
u32 pipe_send(const union chunk *from, u32 count, u64 *waited);

#endif
