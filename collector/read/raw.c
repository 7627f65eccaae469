/*
 * raw.c - see raw.h.
 */
#include "raw.h"
#include "../util/array.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { BATCH = 32 };

int raw_open(struct raw *w, const char *path)
{
	*w = (struct raw) { .fd = -1 };
	if (!path)
		return 0;
	w->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (w->fd < 0)
		return -errno;
	w->batch = must(aligned_alloc(CHUNK_BYTES, BATCH * sizeof(*w->batch)));
	return 0;
}

static void flush(struct raw *w)
{
	const char *at = (const char *)w->batch;
	size_t left = w->used * sizeof(*w->batch);

	while (left && !w->error) {
		ssize_t n = write(w->fd, at, left);

		if (n < 0 && errno != EINTR)
			w->error = -errno;
		if (n > 0) {
			at += n;
			left -= (size_t)n;
		}
	}
	w->used = 0;
}

void raw_put(struct raw *w, const union chunk *c, u64 reached)
{
	if (w->fd < 0 || w->error)
		return;
	if (w->used == BATCH)
		flush(w);
	w->batch[w->used] = *c;
	w->batch[w->used++].head.reserved = reached;
}

void raw_close(struct raw *w)
{
	if (w->fd < 0)
		return;
	flush(w);
	if (close(w->fd) && !w->error)
		w->error = -errno;
	free(w->batch);
	w->batch = NULL;
	w->fd = -1;
}
