/*
 * heard.c - children that were announced and have said nothing yet.
 *
 * A child that sleeps first and allocates later has no image so far, but its parent said that it made it. It counts as
 * alive, so that a recording does not end under its feet.
 */
#include "recording.h"
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

static void add(struct recording *r, u32 pid)
{
	u32 i;
	int fd;

	for (i = 0; i < r->heards; i++)
		if (r->heard[i].pid == pid)
			return;
	if (r->heards == HEARD_MAX || watch_of_pid(r, pid))
		return;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (fd >= 0)
		r->heard[r->heards++] = (struct heard) { pid, fd };
}

static void drop(struct recording *r, u32 i)
{
	close(r->heard[i].pidfd);
	r->heard[i] = r->heard[--r->heards];
}

void heard_chunk(struct recording *r, const union chunk *c)
{
	const u64 *word = &c->word[CHUNK_HEAD_WORDS];
	u32 i, down = 0;

	for (i = 0; i < USED_UP(c->head.used); i++) {
		u64 w = word[i];
		struct event e;

		down += (w & 7) == KIND_event ? event_words(w) : packed_of[w & 7].words;
		if ((w & 7) != KIND_event || EVENT_TYPE(w) != EVENT_child)
			continue;
		e = chunk_event(c, w, down);
		if (EVENT_BODY(&e, child)->followed)
			add(r, (u32)EVENT_BODY(&e, child)->pid);
	}
}

void heard_forget(struct recording *r, u32 pid)
{
	u32 i;

	for (i = 0; i < r->heards; i++)
		if (r->heard[i].pid == pid)
			drop(r, i--);
}

void heard_ends(struct recording *r)
{
	struct pollfd fd[HEARD_MAX];
	u32 i, n = r->heards;

	for (i = 0; i < n; i++)
		fd[i] = (struct pollfd) { .fd = r->heard[i].pidfd, .events = POLLIN };
	if (!n || poll(fd, n, 0) <= 0)
		return;
	for (i = n; i-- > 0;)
		if (fd[i].revents)
			drop(r, i);
}

void heard_release(struct recording *r)
{
	while (r->heards)
		drop(r, r->heards - 1);
}
