/*
 * proc.c - see proc.h.
 */
#include "proc.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { JIT_LINES_MAX = 200000, JIT_BYTES_MAX = 32 << 20, FILES_SHARE = 4 };

static int open_file(u32 pid, const char *file)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, file);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool read_fd(int fd, char *to, size_t size)
{
	ssize_t n = pread(fd, to, size - 1, 0);

	to[n > 0 ? n : 0] = 0;
	return n > 0;
}

static bool read_text(u32 pid, const char *file, char *to, size_t size)
{
	int fd = open_file(pid, file);
	bool ok = fd >= 0 && read_fd(fd, to, size);

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool may_be_kept(int fd)
{
	static rlim_t below;
	struct rlimit files;

	if (!below && !getrlimit(RLIMIT_NOFILE, &files))
		below = files.rlim_cur / FILES_SHARE;
	return (rlim_t)fd < below;
}

/* Finding the file takes as long as reading it, so it stays open, while there are few. */
static bool read_kept(u32 pid, int *kept, const char *file, char *to, size_t size)
{
	int fd = *kept >= 0 ? *kept : open_file(pid, file);
	bool ok = fd >= 0 && read_fd(fd, to, size);

	*kept = ok && may_be_kept(fd) ? fd : -1;
	if (fd >= 0 && *kept < 0)
		close(fd);
	return ok;
}

static u64 kilobytes(const char *status, const char *key)
{
	const char *at = strstr(status, key);

	return at ? strtoull(at + strlen(key), NULL, 10) * 1024 : 0;
}

/* The fields after the name, which may hold anything, begin behind its last parenthesis. */
static u64 stat_field(const char *stat, int number)
{
	const char *at = strrchr(stat, ')');
	int i;

	for (i = 2; at && i < number; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static u64 cpu_ns(u32 pid, const char *stat)
{
	struct timespec t;
	clockid_t id;

	if (!clock_getcpuclockid((pid_t)pid, &id) && !clock_gettime(id, &t))
		return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
	return (stat_field(stat, 14) + stat_field(stat, 15)) * (1000000000u / (u64)sysconf(_SC_CLK_TCK));
}

void proc_files_close(struct proc_files *f)
{
	if (f->status >= 0)
		close(f->status);
	if (f->stat >= 0)
		close(f->stat);
	*f = NO_PROC_FILES;
}

bool proc_sample(u32 pid, struct proc_files *f, struct rec_sample *to)
{
	char status[8192], stat[2048];

	if (!read_kept(pid, &f->status, "status", status, sizeof(status)) || !read_kept(pid, &f->stat, "stat", stat, sizeof(stat)))
		return false;
	if (!strstr(status, "\nRssAnon:"))              /* a zombie has no memory to speak of */
		return false;
	*to = (struct rec_sample) {
		.pid = pid,
		.rss_anon = kilobytes(status, "\nRssAnon:"),
		.rss_file = kilobytes(status, "\nRssFile:"),
		.rss_shmem = kilobytes(status, "\nRssShmem:"),
		.rss_high = kilobytes(status, "\nVmHWM:"),
		.minor = stat_field(stat, 10),
		.major = stat_field(stat, 12),
		.cpu = cpu_ns(pid, stat),
	};
	return true;
}

/* Until its parent has taken it, its number is its own and its status is shown. */
static bool end_of_zombie(u32 pid, int pidfd, int *wait_status)
{
	char stat[2048];

	if (!read_text(pid, "stat", stat, sizeof(stat)) || !strstr(stat, ") Z ") || syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0))
		return false;
	*wait_status = (int)stat_field(stat, 52);
	return true;
}

/* From linux/pidfd.h of Linux 6.15, which tells this to whoever holds a process that was taken. */
struct pidfd_end { u64 mask, cgroup; u32 ids[11]; i32 wait_status; };
#define PIDFD_GET_END _IOWR(0xFF, 11, struct pidfd_end)
enum { PIDFD_HAS_END = 1 << 3 };

static bool end_of_taken(int pidfd, int *wait_status)
{
	struct pidfd_end e = { .mask = PIDFD_HAS_END };

	if (ioctl(pidfd, PIDFD_GET_END, &e) || !(e.mask & PIDFD_HAS_END))
		return false;
	*wait_status = e.wait_status;
	return true;
}

bool proc_end(u32 pid, int pidfd, int *wait_status)
{
	return end_of_zombie(pid, pidfd, wait_status) || end_of_taken(pidfd, wait_status);
}

static FILE *open_jit_map(u32 pid, u32 uid)
{
	char path[64];
	struct stat st;
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%u.map", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && (st.st_uid == geteuid() || st.st_uid == uid))
		return fdopen(fd, "r");
	close(fd);
	return NULL;
}

void proc_jit_names(u32 pid, u32 uid, void (*name)(void *to, const struct rec_jit_name *r, const char *text, size_t len), void *to)
{
	FILE *f = open_jit_map(pid, uid);
	char line[2048], *end;
	u32 lines = 0;
	size_t bytes = 0;

	while (f && lines++ < JIT_LINES_MAX && bytes < JIT_BYTES_MAX && fgets(line, sizeof(line), f)) {
		struct rec_jit_name r = { .pid = pid };
		size_t len = strcspn(line, "\n");

		bytes += len;
		line[len] = 0;
		r.start = strtoull(line, &end, 16);
		r.size = strtoull(end, &end, 16);
		while (*end == ' ')
			end++;
		if (r.size && *end)
			name(to, &r, end, strlen(end));
	}
	if (f)
		fclose(f);
}
