/*
 * dump.h - records as text, one a line.
 */
#ifndef DUMP_H
#define DUMP_H

#include "chunk.h"

struct dump_probes;

struct dump {
	int fd;
	int error;                      /* errno of the first write that failed */
	u32 used;
	struct dump_probes *probes;     /* NULL: none so far */
	char text[1 << 16];
};

void dump_chunk(void *dump, const union chunk *c, u64 number);
int dump_flush(struct dump *d);         /* 0 or -1 */

/* For lines of records: formatted text, and text of anybody's. */
__attribute__((format(printf, 2, 3))) void dump_put(struct dump *d, const char *format, ...);
void dump_plain(struct dump *d, const char *text, u32 len);

/* dump_probes.c */
void dump_probed(struct dump *d, const struct chunk_head *h, const struct event *e);    /* behind a record: what a probed call's values mean */
void dump_probes_free(struct dump *d);

#endif
