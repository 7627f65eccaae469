/*
 * heap.h - where the collector's malloc takes its memory from.
 */
#ifndef HEAP_H
#define HEAP_H

/* The work at the end of a recording begins: much is allocated at once. */
void heap_hurry(void);

#endif
