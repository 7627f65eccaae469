/*
 * aside.c - what is written in a burst waits in pipes of our own.
 *
 *   the FIFO --splice()--> pipe, pipe, pipe ... --readv()--> intake.c
 *
 * Pages are handed from pipe to pipe: nothing is copied, and no memory has to be got for it. That takes a hundredth of the
 * time of reading, which in a burst is time of the program's. A pipe is there only while something is in it: all pipes of a user share a
 * quota of pages, and beyond that those that the program opens would be tiny.
 */
#include "recording.h"
#include "util/limits.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
	PIPE_BYTES = 1 << 20,           /* more is not for everybody */
	RAM_SHARE = 128,
	FILES_SHARE = 8,
};

static u64 least(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* As many as others do not need: of a user's quota of pages in pipes we leave a quarter. */
void aside_open(struct recording *r)
{
	u64 bytes = least(limits_memory() / RAM_SHARE, limits_pipes() / 4 * 3);
	struct rlimit files = { 0 };

	getrlimit(RLIMIT_NOFILE, &files);
	r->aside.most = (u32)least(ASIDE_PIPES, least(bytes / PIPE_BYTES, files.rlim_cur / FILES_SHARE / 2));
}

static void close_pipe(struct aside_pipe *p)
{
	close(p->fd[0]);
	close(p->fd[1]);
}

static bool open_pipe(struct aside_pipe *p)
{
	if (pipe2(p->fd, O_NONBLOCK | O_CLOEXEC))
		return false;
	if (fcntl(p->fd[1], F_SETPIPE_SZ, PIPE_BYTES) == PIPE_BYTES)
		return true;
	close_pipe(p);
	return false;
}

/* Those in use are a stretch of the ring of `most`. */
static struct aside_pipe *pipe_at(struct aside *a, u32 i)
{
	return &a->pipe[(a->first + i) % a->most];
}

/* False: there is no more room. */
static bool next_pipe(struct aside *a)
{
	if (a->used == a->most || !open_pipe(pipe_at(a, a->used)))
		return false;
	pipe_at(a, a->used++)->after = a->empty_at;
	return true;
}

static bool is_empty(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) <= 0;
}

static bool move(int from, int to)
{
	return splice(from, NULL, to, NULL, PIPE_BYTES, SPLICE_F_MOVE | SPLICE_F_NONBLOCK) > 0;
}

bool aside_put(struct recording *r)
{
	struct aside *a = &r->aside;
	u64 now = recording_ticks(r);

	while (!is_empty(r->pipe_fd)) {
		if (!(a->used && move(r->pipe_fd, pipe_at(a, a->used - 1)->fd[1])) && !next_pipe(a))
			return false;
		now = recording_ticks(r);
	}
	a->empty_at = now;
	return true;
}

u64 aside_room(const struct recording *r)
{
	return (u64)r->aside.most * PIPE_BYTES;
}

int aside_fd(struct recording *r)
{
	return r->aside.used ? pipe_at(&r->aside, 0)->fd[0] : -1;
}

u64 aside_after(struct recording *r)
{
	return r->aside.used ? pipe_at(&r->aside, 0)->after : r->aside.empty_at;
}

void aside_next(struct recording *r)
{
	struct aside *a = &r->aside;

	close_pipe(pipe_at(a, 0));
	a->first = (a->first + 1) % a->most;
	a->used--;
}

void aside_close(struct recording *r)
{
	while (r->aside.used)
		aside_next(r);
}
