/*
 * probing.c - the probes of a recording: their table goes into the session directory for the programs, their source into
 * the collector's own stream for the model and for a replay.
 */
#include "recording.h"
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int write_file(int dir_fd, const char *name, const struct buf *bytes)
{
	int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), error;

	if (fd < 0)
		return errno;
	error = -buf_write(bytes, fd);
	if (close(fd) && !error)
		error = errno;
	return error;
}

int probing_write(const struct recording *r, const struct probe_set *probes)
{
	struct buf table = { 0 };
	int error;

	if (!probes || !probes_count(probes))
		return 0;
	error = probes_compile(probes, &table) ? write_file(r->dir_fd, "probes", &table) : ENOMEM;
	buf_release(&table);
	return error;
}

void probing_say(struct recording *r, const struct probe_set *probes)
{
	struct buf source = { 0 };

	if (!probes || !probes_count(probes))
		return;
	probes_source(probes, &source);
	for (size_t at = 0; at < source.used; at += TEXT_MAX) {
		size_t piece = source.used - at < TEXT_MAX ? source.used - at : TEXT_MAX;

		own_event(&r->own, r->start_ticks, EVENT_probe_rows, NULL, 0, source.at + at, piece);
	}
	buf_release(&source);
}
