/*
 * replay.h - a raw stream file becomes the same session that the live recording was.
 *
 * The file is the sequence of chunks as they were taken, the collector's own among them.
 */
#ifndef REPLAY_H
#define REPLAY_H

#include "../model/session.h"

/* Feeds the file to a new session. On trouble returns NULL and says in `why` what and at which chunk. */
struct session *replay_file(const char *path, const struct listener *listener, char *why, size_t why_size);
/* Lists every record of the file as text on fd 1 (`mlprof dump`). 0, or -1 with `why`. */
int replay_dump(const char *path, int fd, char *why, size_t why_size);
/* The format page: every record and field with its meaning, from records.def. 0 or -errno. */
int replay_format(int fd);

#endif
