/*
 * vk_stamps.c - the query pools that a command buffer's stamps go to, and the way of the results out of them.
 *
 *   ops      0 .. 31 | 32 .. 95 | 96 .. 223 | ...      two queries each, in pools that double
 *
 * A pool is reset inside of the command buffer before its first stamp, so every submission of the buffer resets it anew; it
 * stays with the command buffer for the next recording. The device copies the results. (vk_queries.c: a pool need not be the driver's.)
 */
#include "vk.h"

static struct pool stamps_pool = POOL(struct vk_stamps), range_pool = POOL(struct vk_range);

enum { RANGE_FIRST = 16384 };

/* ---- query pools ----------------------------------------------------------------------------- */

static struct vk_stamps *take_spare(struct vk_device *d, u32 chunk)
{
	struct vk_stamps *found;

	spin_lock(&d->lock);
	found = d->spare_stamps[chunk];
	if (found)
		d->spare_stamps[chunk] = found->next;
	spin_unlock(&d->lock);
	return found;
}

static struct vk_stamps *make(struct vk_device *d, u32 ops)
{
	struct vk_stamps *s = pool_get(&stamps_pool);

	if (!s)
		return NULL;
	s->ops = ops;
	if (vk_queries_make(d, ops * 2, &s->queries))
		return s;
	pool_put(&stamps_pool, s);
	return NULL;
}

/* Where the op's two stamps go. */
bool vk_stamps_for(struct vk_command_buffer *c, u32 op, struct vk_stamp *to)
{
	u32 chunk = 31 - __builtin_clz(op / VK_CHUNK_FIRST + 1), ops = VK_CHUNK_FIRST << chunk, at = op + VK_CHUNK_FIRST - ops;
	struct vk_stamps *s;

	if (chunk >= VK_CHUNKS)
		return false;
	s = c->stamps[chunk];
	if (!s && !(s = take_spare(c->device, chunk)) && !(s = make(c->device, ops)))
		return false;
	c->stamps[chunk] = s;
	if (at == 0)
		vk_queries_reset(c->device, c->handle, &s->queries, ops * 2);
	to->queries = &s->queries;
	to->query = at * 2;
	return true;
}

/* Copies what `from` recorded, recorded itself in another command buffer. */
void vk_stamps_copy(struct vk_command_buffer *from, VkCommandBuffer in, VkBuffer to, u64 offset)
{
	u32 left = from->recording->ops;

	for (u32 i = 0; left && i < VK_CHUNKS; i++) {
		struct vk_stamps *s = from->stamps[i];
		u32 n = left < s->ops ? left : s->ops;

		vk_queries_copy(from->device, in, &s->queries, n * 2, to, offset);
		offset += n * 16ull;
		left -= n;
	}
}

void vk_stamps_tell(const struct vk_command_buffer *from, struct vk_content *to)
{
	u32 left = from->recording->ops;

	for (u32 i = 0; left && i < VK_CHUNKS; i++) {
		u32 n = left < from->stamps[i]->ops ? left : from->stamps[i]->ops;

		if (to->pieces == VK_PIECES) {
			to->odd = true;
			return;
		}
		to->piece[to->pieces].queries = vk_queries_key(&from->stamps[i]->queries);
		to->piece[to->pieces++].ops = n;
		left -= n;
	}
}

/* ---- results of secondary command buffers ------------------------------------------------------ */

static struct vk_range *range_with(struct vk_command_buffer *c, u64 bytes)
{
	struct vk_range *r = c->ranges, *fresh;
	u64 size = r ? r->bytes * 2 : RANGE_FIRST;

	for (; r; r = r->next)
		if (r->bytes - r->used >= bytes)
			return r;
	fresh = pool_get(&range_pool);
	if (!fresh)
		return NULL;
	fresh->bytes = size > bytes ? size : bytes;
	if (!vk_buffer_make(c->device, fresh->bytes, false, &fresh->buffer, &fresh->memory, NULL)) {
		pool_put(&range_pool, fresh);
		return NULL;
	}
	fresh->next = c->ranges;
	c->ranges = fresh;
	return fresh;
}

bool vk_stamps_keep(struct vk_command_buffer *c, struct vk_command_buffer *secondary, struct vk_child *child)
{
	u64 bytes = secondary->recording->ops * 16ull;
	struct vk_range *r = range_with(c, bytes);

	if (!r)
		return false;
	vk_stamps_copy(secondary, c->handle, r->buffer, r->used);
	child->buffer = r->buffer;
	child->offset = r->used;
	r->used += bytes;
	return true;
}

/* ---- the end ------------------------------------------------------------------------------------ */

/* The command buffer is not at work any more, nor is our copy, which belongs to the same batch. */
void vk_stamps_release(struct vk_command_buffer *c)
{
	struct vk_device *d = c->device;

	for (u32 i = 0; i < VK_CHUNKS; i++) {
		if (!c->stamps[i])
			continue;
		spin_lock(&d->lock);
		c->stamps[i]->next = d->spare_stamps[i];
		d->spare_stamps[i] = c->stamps[i];
		spin_unlock(&d->lock);
		c->stamps[i] = NULL;
	}
	for (struct vk_range *r = c->ranges, *next; r; r = next) {
		next = r->next;
		vk_buffer_free(d, r->buffer, r->memory);
		pool_put(&range_pool, r);
	}
	c->ranges = NULL;
}

void vk_stamps_free(struct vk_device *d)
{
	for (u32 i = 0; i < VK_CHUNKS; i++)
		for (struct vk_stamps *s; (s = take_spare(d, i));) {
			vk_queries_free(d, &s->queries);
			pool_put(&stamps_pool, s);
		}
}
