/*
 * raw.h - the raw file: every chunk as it was taken.
 */
#ifndef RAW_H
#define RAW_H

#include <mlprof/wire.h>

struct raw {
	int fd;                         /* -1: none is kept */
	int error;                      /* -errno of the first write that failed; nothing is written after it */
	u32 used;
	union chunk *batch;
};

int raw_open(struct raw *w, const char *path);          /* path NULL: none. 0 or -errno */
void raw_put(struct raw *w, const union chunk *c, u64 reached);
void raw_close(struct raw *w);

#endif
