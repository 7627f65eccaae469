/*
 * heap.h - where the collector's malloc takes its memory from.
 */
#ifndef HEAP_H
#define HEAP_H

#include <stddef.h>

/* The work at the end of a recording begins: much is allocated at once. */
void heap_hurry(void);

/* Memory for a table that is read at random, to be freed: on large pages if it is large, else each look would miss the TLB. Not zeroed. */
void *heap_table(size_t bytes);

#endif
