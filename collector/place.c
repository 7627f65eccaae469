/*
 * place.c - see place.h.
 *
 * A collector holds a lock on its directory while it lives. One that was killed leaves directory and files behind, in
 * memory where it is a tmpfs; the next one that finds such a directory of its own user unlocked removes it. The lock says
 * so across containers that share the place but not the process numbers.
 */
#include "place.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mlprof/wire.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME "mlprof-XXXXXX"
#define FIXED_PART 7

static bool usable(const char *dir)
{
	struct stat st;

	return dir && dir[0] == '/' && strlen(dir) < 200 && !stat(dir, &st) && S_ISDIR(st.st_mode) && !access(dir, W_OK | X_OK);
}

static void remove_files(int fd)
{
	DIR *d = fdopendir(dup(fd));
	struct dirent *e;

	while (d && (e = readdir(d)))
		unlinkat(fd, e->d_name, 0);
	if (d)
		closedir(d);
}

/* Only what a collector has made: ours, private, with a control page in it. */
static bool is_session(int fd)
{
	struct control c;
	struct stat st;
	int control;
	bool ok;

	if (fstat(fd, &st) || st.st_uid != geteuid() || (st.st_mode & 07777) != 0700)
		return false;
	control = openat(fd, "control", O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	ok = control >= 0 && read(control, &c, sizeof(c)) == sizeof(c) && c.magic == CONTROL_MAGIC;
	if (control >= 0)
		close(control);
	return ok;
}

static void sweep_one(int base, const char *name)
{
	int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	if (fd < 0)
		return;
	if (is_session(fd) && !flock(fd, LOCK_EX | LOCK_NB)) {
		remove_files(fd);
		unlinkat(base, name, AT_REMOVEDIR);
	}
	close(fd);
}

static void sweep(const char *base)
{
	DIR *d = opendir(base);
	struct dirent *e;

	while (d && (e = readdir(d)))
		if (strlen(e->d_name) == sizeof(NAME) - 1 && !strncmp(e->d_name, NAME, FIXED_PART))
			sweep_one(dirfd(d), e->d_name);
	if (d)
		closedir(d);
}

int place_make(char *dir, size_t size, int *fd)
{
	const char *const place[] = { getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/dev/shm", "/tmp" };
	int error = ENOENT;
	size_t i;

	*fd = -1;
	for (i = 0; i < sizeof(place) / sizeof(*place); i++) {
		if (!usable(place[i]))
			continue;
		snprintf(dir, size, "%s/%s", place[i], NAME);
		if (mkdtemp(dir))
			break;
		error = errno;
	}
	if (i == sizeof(place) / sizeof(*place)) {
		dir[0] = 0;
		return error;
	}
	*fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (*fd < 0)
		return errno;
	flock(*fd, LOCK_EX | LOCK_NB);
	sweep(place[i]);
	return 0;
}

int place_file(int fd, const char *name, const void *bytes, size_t length)
{
	int file = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600), error = 0;
	const char *at = bytes;

	if (file < 0)
		return errno;
	while (length && !error) {
		ssize_t n = write(file, at, length);

		if (n > 0)
			at += n, length -= (size_t)n;
		else if (n == 0 || errno != EINTR)
			error = n == 0 ? EIO : errno;
	}
	if (close(file) && !error)
		error = errno;
	if (error)
		unlinkat(fd, name, 0);
	return error;
}

void place_remove(const char *dir, int fd)
{
	if (fd >= 0)
		remove_files(fd);
	if (dir[0])
		rmdir(dir);
}
