/*
 * replay.c - raw files: chunk after chunk, as they were taken.
 */
#include "replay.h"
#include "../util/array.h"
#include "dump.h"
#include "feed.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { BATCH = 64 };

/* Chunks from fd; a torn last one (the disk was full) becomes one that nobody takes, so that it is counted. -1: errno says why. */
static int read_chunks(int fd, union chunk *to, u32 most)
{
	size_t have = 0, want = most * sizeof(*to);

	while (have < want) {
		ssize_t n = read(fd, (char *)to + have, want - have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		have += (size_t)n;
	}
	if (have % sizeof(*to))
		memset(&to[have / sizeof(*to)], 0, sizeof(*to));
	return (int)((have + sizeof(*to) - 1) / sizeof(*to));
}

static void say(char *why, size_t size, const char *what, u64 chunk)
{
	if (chunk)
		snprintf(why, size, "%s (chunk %llu)", what, (unsigned long long)chunk);
	else
		snprintf(why, size, "%s", what);
}

static int open_raw(const char *path, char *why, size_t why_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		say(why, why_size, strerror(errno), 0);
	return fd;
}

/* Calls `take` for every chunk. Returns how many there were, or -1 with `why`. */
static i64 each_chunk(const char *path, void (*take)(void *to, const union chunk *c, u64 number), void *to, char *why, size_t why_size)
{
	union chunk *batch;
	int fd = open_raw(path, why, why_size), n, i;
	u64 number = 0;

	if (fd < 0)
		return -1;
	batch = must(aligned_alloc(CHUNK_BYTES, BATCH * sizeof(*batch)));
	while ((n = read_chunks(fd, batch, BATCH)) > 0)
		for (i = 0; i < n; i++)
			take(to, &batch[i], number++);
	if (n < 0)
		say(why, why_size, strerror(errno), number);
	free(batch);
	close(fd);
	return n < 0 ? -1 : (i64)number;
}

static void take(void *to, const union chunk *c, u64 number)
{
	struct feed *f = to;
	union chunk *copy = merge_chunk(f->merge);

	(void)number;
	*copy = *c;
	feed_replay(f, copy);
}

static int is_raw(const char *path, char *why, size_t why_size)
{
	bool good = false;
	int fd = open_raw(path, why, why_size);
	union chunk c;

	if (fd < 0)
		return -1;
	if (read_chunks(fd, &c, 1) == 1)
		good = c.head.magic == CHUNK_MAGIC && c.head.version == WIRE_VERSION;
	close(fd);
	if (!good)
		say(why, why_size, "not a raw stream of this version of mlprof", 0);
	return good ? 0 : -1;
}

struct session *replay_file(const char *path, const struct listener *listener, char *why, size_t why_size)
{
	struct session *s = NULL;
	struct feed f;

	if (is_raw(path, why, why_size))
		return NULL;
	f = feed_new(listener);
	if (each_chunk(path, take, &f, why, why_size) >= 0) {
		feed_end(&f);
		s = f.session;
		f.session = NULL;
	}
	feed_free(&f);
	return s;
}

int replay_dump(const char *path, int fd, char *why, size_t why_size)
{
	struct dump d = { .fd = fd };
	i64 n;

	if (is_raw(path, why, why_size))
		return -1;
	n = each_chunk(path, dump_chunk, &d, why, why_size);
	if (n >= 0 && dump_flush(&d)) {
		say(why, why_size, strerror(d.error), 0);
		n = -1;
	}
	dump_probes_free(&d);
	return n < 0 ? -1 : 0;
}
