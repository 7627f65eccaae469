/*
 * intake.c - the pipe: bytes become chunks; chunks go to the raw file and to the merge.
 *
 * A chunk may tell that a process has become another image, and to end the old one the pipe is drained, while the batch that the
 * chunk came with is not through. Whoever drains goes on with that batch first: chunks are taken in the pipe's order, always.
 */
#include "recording.h"
#include "util/array.h"
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- the collector's own chunks --------------------------------------------------------- */

/* One is kept in the raw file before any chunk that was taken after it, and when it is full. */
static void keep(struct recording *r, struct own *o)
{
	if (o->kept == o->chunk.head.used)
		return;
	raw_put(&r->raw, &o->chunk, 0);
	o->kept = o->chunk.head.used;
}

static void push(struct recording *r, struct own *o)
{
	union chunk *copy;

	if (o->pushed == o->chunk.head.used)
		return;
	copy = merge_chunk(r->feed.merge);
	*copy = o->chunk;
	merge_push(r->feed.merge, copy);
	o->pushed = o->chunk.head.used;
}

void intake_own_full(void *to, struct own *o)
{
	keep(to, o);
	push(to, o);
}

void intake_own(struct recording *r)
{
	push(r, &r->own);
	push(r, &r->ends);
}

void intake_own_kept(struct recording *r)
{
	intake_own(r);
	keep(r, &r->own);
	keep(r, &r->ends);
}

/* ---- chunks of programs ------------------------------------------------------------------ */

void intake_chunk(struct recording *r, union chunk *c)
{
	u64 seq = c->head.seq;
	struct stream *s;

	if (c->head.pid == 0 && c->head.magic == CHUNK_MAGIC)   /* nobody speaks for us */
		c->head.magic = 0;
	intake_own_kept(r);
	raw_put(&r->raw, c, merge_reached(r->feed.merge));
	s = merge_push(r->feed.merge, c);
	if (s && s->seen == seq)
		s->peeked = false;
	if (s && !s->image->feeder)
		watch_image(r, s->image);
	if (s && s->taken.children)
		heard_chunk(r, c);      /* queued, or at least not reused yet */
}

static void take_copy(struct recording *r, const void *bytes)
{
	union chunk *c = merge_chunk(r->feed.merge);

	memcpy(c, bytes, sizeof(*c));
	intake_chunk(r, c);
}

static bool begins_well(const void *block)
{
	u32 magic;

	memcpy(&magic, block, sizeof(magic));
	return magic == CHUNK_MAGIC;
}

/* Chunks are written whole, so a block that does not begin like one means that somebody else wrote: what comes
 * before the next beginning is thrown away. */
static void find_beginning(struct recording *r)
{
	static const u32 magic = CHUNK_MAGIC;
	char *next = memmem(r->part + 1, CHUNK_BYTES - 1, &magic, sizeof(magic));

	OWN(&r->own, recording_ticks(r), loss, "bad_chunks", strlen("bad_chunks"), .count = 1);
	r->part_bytes = next ? (u32)(r->part + CHUNK_BYTES - next) : 0;
	if (next)
		memmove(r->part, next, r->part_bytes);
}

/* Out of step: bytes are put together until a chunk is whole. */
static void put_together(struct recording *r, const char *bytes, size_t n)
{
	r->in_pieces = true;            /* what comes later must not come in between */
	while (n) {
		size_t fits = CHUNK_BYTES - r->part_bytes < n ? CHUNK_BYTES - r->part_bytes : n;

		memcpy(r->part + r->part_bytes, bytes, fits);
		r->part_bytes += (u32)fits;
		bytes += fits;
		n -= fits;
		if (r->part_bytes < CHUNK_BYTES)
			break;
		if (begins_well(r->part)) {
			r->part_bytes = 0;
			take_copy(r, r->part);
		} else {
			find_beginning(r);
		}
	}
	r->in_pieces = false;
}

static void take_block(struct recording *r, union chunk *c, size_t n)
{
	if (n == CHUNK_BYTES && !r->part_bytes && begins_well(c)) {
		intake_chunk(r, c);
		return;
	}
	put_together(r, (const char *)c, n);
	merge_unread(r->feed.merge, c);
}

static void take_batch(struct recording *r)
{
	while (r->batch.next < r->batch.count) {
		u32 i = r->batch.next++;
		size_t at = (size_t)i * CHUNK_BYTES, left = r->batch.bytes > at ? r->batch.bytes - at : 0;

		if (left)
			take_block(r, r->batch.chunk[i], left < CHUNK_BYTES ? left : CHUNK_BYTES);
		else
			merge_unread(r->feed.merge, r->batch.chunk[i]);
	}
}

/* From what was put aside, which is older, else from the pipe. Returns bytes read. */
static size_t drain_batch(struct recording *r)
{
	struct iovec v[INTAKE_BATCH];
	ssize_t n;
	u32 i;
	int aside;

	take_batch(r);
	for (i = 0; i < INTAKE_BATCH; i++) {
		r->batch.chunk[i] = merge_chunk(r->feed.merge);
		v[i] = (struct iovec) { r->batch.chunk[i], sizeof(union chunk) };
	}
	aside = aside_fd(r);            /* now: whoever took the last batch may have drained */
	n = readv(aside >= 0 ? aside : r->pipe_fd, v, INTAKE_BATCH);
	if (n <= 0 && aside >= 0)
		aside_next(r);
	r->batch.bytes = n > 0 ? (size_t)n : 0;
	r->batch.next = 0;
	r->batch.count = INTAKE_BATCH;
	take_batch(r);
	return n > 0 ? (size_t)n : 0;
}

static u32 drain_aside(struct recording *r, u32 most)
{
	size_t taken = 0;

	while (aside_fd(r) >= 0 && taken < (size_t)most * CHUNK_BYTES)
		taken += drain_batch(r);
	return (u32)(taken / CHUNK_BYTES);
}

static u32 drain_pipe(struct recording *r, u32 most)
{
	u64 now = recording_ticks(r);
	size_t taken = 0, n;

	while (taken < (size_t)most * CHUNK_BYTES) {
		n = drain_batch(r);
		if (!n)
			break;
		taken += n;
	}
	r->aside.empty_at = now;
	return (u32)(taken / CHUNK_BYTES);
}

u32 intake_drain(struct recording *r, u32 most)
{
	if (r->in_pieces)
		return 0;
	return aside_fd(r) >= 0 ? drain_aside(r, most) : drain_pipe(r, most);
}

u32 intake_drain_all(struct recording *r)
{
	if (r->in_pieces)
		return 0;
	drain_aside(r, UINT32_MAX);
	return drain_pipe(r, PIPE_CHUNKS);
}
