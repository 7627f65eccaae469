/*
 * pipe.c - the FIFO to the collector: whole chunks, never to anybody else's descriptor.
 *
 * We open it for reading and writing, non-blocking. So no write can raise SIGPIPE, no open can hang, and a
 * full pipe is an answer (EAGAIN) instead of a wait that nobody could end. The descriptor is kept high and
 * close-on-exec, where programs neither look nor count; a program that closes or reuses the number is found
 * out before each write by device and inode, and the FIFO is opened again by name. Where the limit on
 * descriptors is so low that ours would be missed, none is kept.
 */
#include "pipe.h"
#include "text.h"
#include "ticks.h"
#include <errno.h>

enum { HIGH_FD = 900, LOW_LIMIT = 64, WAIT_MS = 20, PATIENCE_MS = 10000 };

static struct {
	int fd;                         /* -1: none */
	u64 device, inode;
} fifo = { -1, 0, 0 };

static bool is_fifo(int fd)
{
	struct stat st;

	return sys_fstat(fd, &st) == 0 && st.st_dev == fifo.device && st.st_ino == fifo.inode;
}

static int open_by_name(void)
{
	char path[sizeof guest.dir + 8];

	text_join(path, sizeof path, guest.dir, "/pipe");
	return sys_open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW, 0);
}

/* Moves fd out of the program's way. Without room up there, returns -1 and leaves fd as it is. */
static int move_high(int fd)
{
	struct rlimit limit;
	int high;

	if (sys_getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < LOW_LIMIT)
		return -1;
	high = sys_fcntl(fd, F_DUPFD_CLOEXEC, limit.rlim_cur > HIGH_FD + 100 ? HIGH_FD : (long)limit.rlim_cur - 8);
	return high < 0 ? -1 : high;
}

/* A descriptor to write to now; *keep says whether it stays. */
static int acquire(bool *keep)
{
	int fd = fifo.fd, high;

	*keep = true;
	if (fd >= 0 && is_fifo(fd))
		return fd;
	fd = open_by_name();
	if (fd < 0)
		return fd;
	if (!is_fifo(fd)) {             /* the name now leads somewhere else */
		sys_close(fd);
		return -1;
	}
	high = move_high(fd);
	if (high < 0) {
		*keep = false;
		return fd;
	}
	sys_close(fd);
	fifo.fd = high;
	return high;
}

bool pipe_open(void)
{
	struct stat st;
	bool keep;
	int fd = open_by_name();

	if (fd < 0)
		return false;
	if (sys_fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode)) {
		sys_close(fd);
		return false;
	}
	fifo.device = st.st_dev;
	fifo.inode = st.st_ino;
	sys_close(fd);
	fd = acquire(&keep);
	if (fd >= 0 && !keep)
		sys_close(fd);
	return fd >= 0;
}

static u64 now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000 + (u64)t.tv_nsec / 1000000;
}

/* The pipe is full: wait a little. False: give up. The program's signals may end each wait at once, so only the clock counts. */
static bool wait_for_room(int fd, u64 since_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	if (guest.on_full == ON_FULL_DROP || guest.control->state != SESSION_OPEN)
		return false;
	sys_poll(&p, 1, WAIT_MS);
	if (p.revents & POLLOUT)
		return true;
	if (session_collector_gone()) {
		quiet_aloud("the collector is gone");
		return false;
	}
	if (now_ms() - since_ms > PATIENCE_MS) {
		quiet_aloud("the collector does not answer");
		return false;
	}
	return true;
}

u32 pipe_send(const union chunk *from, u32 count, u64 *waited)
{
	u64 left = (u64)count * CHUNK_BYTES, since_ms = 0, before;
	bool keep, go_on = guest.state == GUEST_ON && guest.control->state == SESSION_OPEN;
	int fd = go_on ? acquire(&keep) : -1;

	if (fd < 0)
		return 0;
	while (left && go_on) {
		long n = sys_write(fd, (const char *)from + (count * (u64)CHUNK_BYTES - left), left);

		if (n > 0) {
			left -= n;
			since_ms = 0;
			continue;
		}
		if (n != -EAGAIN && n != -EINTR)
			break;
		before = ticks();
		since_ms = since_ms ? since_ms : now_ms();
		go_on = wait_for_room(fd, since_ms);
		*waited += ticks() - before;
	}
	if (!keep)
		sys_close(fd);
	return count - (u32)((left + CHUNK_BYTES - 1) / CHUNK_BYTES);
}
