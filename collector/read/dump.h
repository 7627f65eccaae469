/*
 * dump.h - records as text, one a line.
 */
#ifndef DUMP_H
#define DUMP_H

#include "chunk.h"

struct dump {
	int fd;
	int error;                      /* errno of the first write that failed */
	u32 used;
	char text[1 << 16];
};

void dump_chunk(void *dump, const union chunk *c, u64 number);
int dump_flush(struct dump *d);         /* 0 or -1 */

#endif
