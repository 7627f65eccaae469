/*
 * intake.c - the pipe: bytes become chunks; chunks go to the raw file and to the merge.
 */
#include "recording.h"
#include "read/array.h"
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BATCH = 16 };

/* ---- the collector's own chunk ---------------------------------------------------------- */

/* It is kept in the raw file before any chunk that was taken after it, and when it is full. */
static void keep_own(struct recording *r, const union chunk *c)
{
	if (r->own_kept == c->head.used)
		return;
	raw_put(&r->raw, c, 0);
	r->own_kept = c->head.used;
}

static void push_own(struct recording *r, const union chunk *c)
{
	union chunk *copy;

	if (r->own_pushed == c->head.used)
		return;
	copy = merge_chunk(r->merge);
	*copy = *c;
	merge_push(r->merge, copy);
	r->own_pushed = c->head.used;
}

void intake_own_full(void *to, const union chunk *c)
{
	struct recording *r = to;

	keep_own(r, c);
	push_own(r, c);
	r->own_pushed = r->own_kept = 0;
}

void intake_own(struct recording *r)
{
	push_own(r, &r->own.chunk);
}

/* ---- chunks of programs ------------------------------------------------------------------ */

void intake_chunk(struct recording *r, union chunk *c)
{
	struct stream *s;

	if (c->head.pid == 0 && c->head.magic == CHUNK_MAGIC)   /* nobody speaks for us */
		c->head.magic = 0;
	push_own(r, &r->own.chunk);
	keep_own(r, &r->own.chunk);
	raw_put(&r->raw, c, merge_reached(r->merge));
	s = merge_push(r->merge, c);
	if (s && !s->image->feeder)
		watch_image(r, s->image);
}

static void take_part(struct recording *r)
{
	union chunk *c = merge_chunk(r->merge);

	memcpy(c, r->part, sizeof(*c));
	r->part_bytes = 0;
	intake_chunk(r, c);
}

/* Chunks are written whole, so a block that does not begin like one means that somebody else wrote: look for
 * the next beginning. */
static bool begins_well(struct recording *r, const void *block)
{
	static const u32 magic = CHUNK_MAGIC;
	const char *next;

	if (!memcmp(block, &magic, sizeof(magic)))
		return true;
	OWN(&r->own, recording_ticks(r), loss, "bad_chunks", strlen("bad_chunks"), .count = 1);
	next = memmem((const char *)block + 1, CHUNK_BYTES - 1, &magic, sizeof(magic));
	if (next) {
		r->part_bytes = (u32)(CHUNK_BYTES - (next - (const char *)block));
		memmove(r->part, next, r->part_bytes);
	}
	return false;
}

/* Out of step: byte by byte until a chunk is whole. */
static int drain_part(struct recording *r)
{
	ssize_t n = read(r->pipe_fd, r->part + r->part_bytes, CHUNK_BYTES - r->part_bytes);

	if (n <= 0)
		return 0;
	r->part_bytes += (u32)n;
	if (r->part_bytes < CHUNK_BYTES)
		return 1;
	r->part_bytes = 0;
	if (begins_well(r, r->part))
		take_part(r);
	return 1;
}

static int drain_batch(struct recording *r)
{
	struct iovec v[BATCH];
	union chunk *c[BATCH];
	ssize_t n;
	int i, whole;

	for (i = 0; i < BATCH; i++) {
		c[i] = merge_chunk(r->merge);
		v[i] = (struct iovec) { c[i], sizeof(*c[i]) };
	}
	n = readv(r->pipe_fd, v, BATCH);
	whole = n > 0 ? (int)(n / CHUNK_BYTES) : 0;
	if (n > 0 && n % CHUNK_BYTES) {
		r->part_bytes = (u32)(n % CHUNK_BYTES);
		memcpy(r->part, c[whole], r->part_bytes);
	}
	for (i = BATCH - 1; i >= whole; i--)
		merge_unread(r->merge, c[i]);
	for (i = 0; i < whole; i++) {
		if (begins_well(r, c[i]))
			intake_chunk(r, c[i]);
		else
			merge_unread(r->merge, c[i]);
	}
	return n > 0 ? whole + 1 : 0;
}

u32 intake_drain(struct recording *r, u32 most)
{
	u32 taken = 0;
	int n;

	while (taken < most) {
		n = r->part_bytes ? drain_part(r) : drain_batch(r);
		if (!n)
			break;
		taken += (u32)n;
	}
	return taken;
}
