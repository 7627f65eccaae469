/*
 * process.h - what process.c, context.c and session.c need of each other.
 */
#ifndef PROCESS_H
#define PROCESS_H

#include "context.h"
#include "pipe.h"

void process_hello_records(struct context *c, u64 t);   /* what opens an image's first stream */
void session_set_environment(void);                     /* children are to be followed, or not */

#endif
