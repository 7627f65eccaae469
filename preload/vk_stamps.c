/*
 * vk_stamps.c - the query pools that a command buffer's stamps go to, and the way of the results out of them.
 *
 *   ops      0 .. 31 | 32 .. 95 | 96 .. 223 | ...      two queries each, in pools that double
 *
 * A pool is reset inside of the command buffer before its first stamp, so every submission of the buffer resets it anew; it
 * stays with the command buffer for the next recording. The device copies the results and resets the pool again, because
 * drivers may keep memory for every stamp that was taken.
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
	VkQueryPoolCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = ops * 2,
	};
	struct vk_stamps *s = pool_get(&stamps_pool);

	if (!s)
		return NULL;
	s->ops = ops;
	if (d->fn.vkCreateQueryPool(d->handle, &info, NULL, &s->pool) == VK_SUCCESS)
		return s;
	pool_put(&stamps_pool, s);
	return NULL;
}

/* Where the op's two stamps go. */
bool vk_stamps_for(struct vk_command_buffer *c, u32 op, VkQueryPool *pool, u32 *query)
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
		c->device->fn.vkCmdResetQueryPool(c->handle, s->pool, 0, ops * 2);
	*pool = s->pool;
	*query = at * 2;
	return true;
}

/* Copies what `from` recorded, recorded itself in another command buffer. */
void vk_stamps_copy(struct vk_command_buffer *from, VkCommandBuffer in, VkBuffer to, u64 offset)
{
	const struct vk_functions *fn = &from->device->fn;
	u32 left = from->recording->ops;

	for (u32 i = 0; left && i < VK_CHUNKS; i++) {
		struct vk_stamps *s = from->stamps[i];
		u32 n = left < s->ops ? left : s->ops;

		fn->vkCmdCopyQueryPoolResults(in, s->pool, 0, n * 2, to, offset, 8, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
		fn->vkCmdResetQueryPool(in, s->pool, 0, n * 2);
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
		to->piece[to->pieces].pool = from->stamps[i]->pool;
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
			d->fn.vkDestroyQueryPool(d->handle, s->pool, NULL);
			pool_put(&stamps_pool, s);
		}
}

/* ---- buffers of our own ---------------------------------------------------------------------------- */

static u32 memory_type(const struct vk_device *d, u32 allowed, VkMemoryPropertyFlags wanted)
{
	for (u32 i = 0; i < d->memory.memoryTypeCount; i++)
		if (allowed & 1u << i && (d->memory.memoryTypes[i].propertyFlags & wanted) == wanted)
			return i;
	return ~0u;
}

/* Host memory that is cached is read much faster, where there is any. */
static u32 host_type(const struct vk_device *d, u32 allowed)
{
	VkMemoryPropertyFlags plain = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
	u32 type = memory_type(d, allowed, plain | VK_MEMORY_PROPERTY_HOST_CACHED_BIT);

	return type != ~0u ? type : memory_type(d, allowed, plain);
}

static bool give_memory(struct vk_device *d, VkBuffer buffer, bool host, VkDeviceMemory *memory, void **at)
{
	VkMemoryRequirements need;
	VkMemoryAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO };

	d->fn.vkGetBufferMemoryRequirements(d->handle, buffer, &need);
	info.allocationSize = need.size;
	info.memoryTypeIndex = host ? host_type(d, need.memoryTypeBits) : memory_type(d, need.memoryTypeBits, 0);
	if (info.memoryTypeIndex == ~0u || d->fn.vkAllocateMemory(d->handle, &info, NULL, memory) != VK_SUCCESS)
		return false;
	if (d->fn.vkBindBufferMemory(d->handle, buffer, *memory, 0) == VK_SUCCESS &&
	    (!host || d->fn.vkMapMemory(d->handle, *memory, 0, VK_WHOLE_SIZE, 0, at) == VK_SUCCESS))
		return true;
	d->fn.vkFreeMemory(d->handle, *memory, NULL);
	return false;
}

bool vk_buffer_make(struct vk_device *d, u64 bytes, bool host, VkBuffer *buffer, VkDeviceMemory *memory, void **at)
{
	VkBufferCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes,
		.usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
	};

	if (d->fn.vkCreateBuffer(d->handle, &info, NULL, buffer) != VK_SUCCESS)
		return false;
	if (give_memory(d, *buffer, host, memory, at))
		return true;
	d->fn.vkDestroyBuffer(d->handle, *buffer, NULL);
	return false;
}

void vk_buffer_free(struct vk_device *d, VkBuffer buffer, VkDeviceMemory memory)
{
	d->fn.vkDestroyBuffer(d->handle, buffer, NULL);
	d->fn.vkFreeMemory(d->handle, memory, NULL);
}
