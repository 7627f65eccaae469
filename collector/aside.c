/*
 * aside.c - what is written in a burst waits in pipes of our own.
 *
 *   the FIFO --splice()--> pipe, pipe, pipe ... --readv()--> intake.c
 *
 * Pages are handed from pipe to pipe: nothing is copied, and no memory has to be got for it. That takes a hundredth of the
 * time of reading, which in a burst is time of the program's.
 */
#include "recording.h"
#include "util/ram.h"
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

enum { PIPE_BYTES = 1 << 20,            /* more is not for everybody */
       RAM_SHARE = 128 };

static bool open_pipe(int fd[2])
{
	if (pipe2(fd, O_NONBLOCK | O_CLOEXEC))
		return false;
	if (fcntl(fd[1], F_SETPIPE_SZ, PIPE_BYTES) == PIPE_BYTES)
		return true;
	close(fd[0]);
	close(fd[1]);
	fd[0] = fd[1] = 0;
	return false;
}

static struct aside_pipe *pipe_at(struct aside *a, u32 i)
{
	return &a->pipe[(a->first + i) % ASIDE_PIPES];
}

/* False: there is no more room. */
static bool next_pipe(struct aside *a)
{
	struct aside_pipe *p = pipe_at(a, a->used);

	if (a->used == a->most || (!p->fd[0] && !open_pipe(p->fd)))
		return false;
	p->after = a->empty_at;
	a->used++;
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

/* As many as the machine can spare: it is the kernel's memory. */
void aside_open(struct recording *r)
{
	u64 pipes = ram_allowed() / RAM_SHARE / PIPE_BYTES;

	r->aside.most = pipes < ASIDE_PIPES ? (u32)pipes : ASIDE_PIPES;
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
	r->aside.first = (r->aside.first + 1) % ASIDE_PIPES;
	r->aside.used--;
}

void aside_close(struct recording *r)
{
	u32 i;

	for (i = 0; i < ASIDE_PIPES; i++)
		if (r->aside.pipe[i].fd[0]) {
			close(r->aside.pipe[i].fd[0]);
			close(r->aside.pipe[i].fd[1]);
		}
}
