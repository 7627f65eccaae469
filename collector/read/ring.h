/*
 * ring.h - looking into a process's shared memory: what it has recorded but not sent.
 *
 * The files are read with pread(), never mapped: a program may cut its file short at any moment, and a read
 * that comes back short is an answer where a mapping would be a SIGBUS.
 */
#ifndef RING_H
#define RING_H

#include <mlprof/wire.h>
#include <stdbool.h>

enum { RING_SEGMENTS = 256 };

struct ring {
	const char *dir;
	u32 pid;
	u64 born;
	int fd[RING_SEGMENTS];          /* -1: not open yet; -2: refused */
	bool no_files;                  /* the last one could not be opened, because too many are */
};

void ring_init(struct ring *r, const char *dir, u32 pid, u64 born);
bool ring_slot(struct ring *r, u32 slot, struct slot_head *to);
/* The head of chunk number seq of a slot, then the chunk. False: it is not there (any more). */
bool ring_head(struct ring *r, u32 slot, u64 seq, struct chunk_head *to);
bool ring_chunk(struct ring *r, const struct chunk_head *head, union chunk *to);
bool ring_segment(struct ring *r, u32 index, struct segment_head *to);
void ring_close(struct ring *r, bool unlink_files);

#endif
