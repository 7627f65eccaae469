/*
 * ring.c - see ring.h.
 */
#include "ring.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOT_OPEN = -1, REFUSED = -2 };

void ring_init(struct ring *r, const char *dir, u32 pid, u64 born)
{
	u32 i;

	*r = (struct ring) { .dir = dir, .pid = pid, .born = born };
	for (i = 0; i < RING_SEGMENTS; i++)
		r->fd[i] = NOT_OPEN;
}

static void file_name(const struct ring *r, u32 index, char *name, size_t size)
{
	snprintf(name, size, "%s/%u.%llx.%u", r->dir, r->pid, (unsigned long long)r->born, index);
}

static bool read_at(int fd, void *to, size_t n, size_t at)
{
	return pread(fd, to, n, (off_t)at) == (ssize_t)n;
}

static bool is_ours(const struct ring *r, int fd, u32 index)
{
	struct segment_head h;
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (u64)st.st_size < sizeof(struct segment))
		return false;
	return read_at(fd, &h, sizeof(h), 0) && h.magic == SEGMENT_MAGIC && h.version == WIRE_VERSION &&
	       h.pid == r->pid && h.born == r->born && h.index == index;
}

/* A file that is not there may come; one that is not ours is not looked at again. */
static int segment_fd(struct ring *r, u32 index)
{
	char name[4096];
	int fd;

	if (index >= RING_SEGMENTS)
		return -1;
	if (r->fd[index] != NOT_OPEN)
		return r->fd[index];
	file_name(r, index, name, sizeof(name));
	fd = open(name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0) {
		r->no_files = errno == EMFILE || errno == ENFILE;
		return -1;
	}
	if (!is_ours(r, fd, index)) {
		struct segment_head h;
		bool unfinished = read_at(fd, &h, sizeof(h), 0) && h.magic == 0;

		close(fd);
		if (!unfinished)
			r->fd[index] = REFUSED;
		return -1;
	}
	return r->fd[index] = fd;
}

static size_t slot_at(u32 slot)
{
	return offsetof(struct segment, slot) + slot % SEGMENT_SLOTS * sizeof(struct slot);
}

bool ring_slot(struct ring *r, u32 slot, struct slot_head *to)
{
	int fd = segment_fd(r, slot / SEGMENT_SLOTS);

	return fd >= 0 && read_at(fd, to, sizeof(*to), slot_at(slot));
}

bool ring_segment(struct ring *r, u32 index, struct segment_head *to)
{
	int fd = segment_fd(r, index);

	return fd >= 0 && read_at(fd, to, sizeof(*to), 0);
}

static size_t chunk_at(u32 slot, u64 seq)
{
	return slot_at(slot) + offsetof(struct slot, ring) + seq % RING_CHUNKS * CHUNK_BYTES;
}

bool ring_head(struct ring *r, u32 slot, u64 seq, struct chunk_head *to)
{
	int fd = segment_fd(r, slot / SEGMENT_SLOTS);

	return fd >= 0 && read_at(fd, to, sizeof(*to), chunk_at(slot, seq)) && to->seq == seq && to->magic == CHUNK_MAGIC &&
	       to->pid == r->pid && to->born == r->born && to->slot == slot;
}

/* The head was read first and its count is the one that holds: the words were there before it said so. */
bool ring_chunk(struct ring *r, const struct chunk_head *head, union chunk *to)
{
	int fd = segment_fd(r, head->slot / SEGMENT_SLOTS);

	if (fd < 0 || !read_at(fd, to, sizeof(*to), chunk_at(head->slot, head->seq)) || to->head.seq != head->seq)
		return false;
	to->head = *head;
	return true;
}

void ring_close(struct ring *r, bool unlink_files)
{
	char name[4096];
	u32 i;

	for (i = 0; i < RING_SEGMENTS; i++) {
		if (r->fd[i] == NOT_OPEN)
			continue;
		if (r->fd[i] >= 0)
			close(r->fd[i]);
		r->fd[i] = NOT_OPEN;
		file_name(r, i, name, sizeof(name));
		if (unlink_files)
			unlink(name);
	}
}
