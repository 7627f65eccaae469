/*
 * vk_pools.c - command pools and command buffers: made, begun, reset and freed.
 */
#include "vk.h"

static struct handles pools, buffers;
static struct pool pool_pool = POOL(struct vk_pool), buffer_pool = POOL(struct vk_command_buffer);

struct vk_command_buffer *vk_command_buffer_of(VkCommandBuffer handle) { return handles_find(&buffers, (u64)handle); }

static bool can_stamp(const struct vk_device *d, u32 family, VkCommandPoolCreateFlags flags)
{
	return family < d->families && d->family[family].bits && !(flags & VK_COMMAND_POOL_CREATE_PROTECTED_BIT) &&
	       d->family[family].flags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT) && guest.control->device_time == DEVICE_TIME_KERNEL;
}

VkResult w_vkCreateCommandPool(VkDevice device, const VkCommandPoolCreateInfo *info, const VkAllocationCallbacks *allocator, VkCommandPool *pool)
{
	struct vk_device *d = vk_device_of(device);
	VkResult r = VK_CALL(d, vkCreateCommandPool)(device, info, allocator, pool);
	struct vk_pool *p = r == VK_SUCCESS && vk_ours(d) ? pool_get(&pool_pool) : NULL;

	if (!p)
		return r;
	p->handle = *pool;
	p->device = d;
	p->family = info->queueFamilyIndex;
	p->stamps = can_stamp(d, p->family, info->flags);
	spin_lock(&d->lock);
	p->next = d->pools;
	if (p->next)
		p->next->before = p;
	d->pools = p;
	spin_unlock(&d->lock);
	handles_put(&pools, vk_key(d, (u64)*pool), p);
	return r;
}

static void buffer_gone(struct vk_command_buffer *c)
{
	handles_remove(&buffers, (u64)c->handle);
	vk_recording_end(c);
	vk_stamps_release(c);
	if (c->before)
		c->before->next = c->next;
	else
		c->pool->buffers = c->next;
	if (c->next)
		c->next->before = c->before;
	pool_put(&buffer_pool, c);
}

static void pool_gone(struct vk_pool *p)
{
	struct vk_device *d = p->device;

	handles_remove(&pools, vk_key(d, (u64)p->handle));
	while (p->buffers)
		buffer_gone(p->buffers);
	spin_lock(&d->lock);
	if (p->before)
		p->before->next = p->next;
	else
		d->pools = p->next;
	if (p->next)
		p->next->before = p->before;
	spin_unlock(&d->lock);
	pool_put(&pool_pool, p);
}

void vk_pools_release(struct vk_device *d)
{
	while (d->pools)
		pool_gone(d->pools);
}

static struct vk_pool *pool_of(struct vk_device *d, VkCommandPool handle)
{
	return vk_ours(d) ? handles_find(&pools, vk_key(d, (u64)handle)) : NULL;
}

void w_vkDestroyCommandPool(VkDevice device, VkCommandPool pool, const VkAllocationCallbacks *allocator)
{
	struct vk_device *d = vk_device_of(device);
	struct vk_pool *p = pool_of(d, pool);

	if (p)
		pool_gone(p);
	VK_CALL(d, vkDestroyCommandPool)(device, pool, allocator);
}

VkResult w_vkResetCommandPool(VkDevice device, VkCommandPool pool, VkCommandPoolResetFlags flags)
{
	struct vk_device *d = vk_device_of(device);
	struct vk_pool *p = pool_of(d, pool);

	for (struct vk_command_buffer *c = p ? p->buffers : NULL; c; c = c->next)
		vk_recording_end(c);
	return VK_CALL(d, vkResetCommandPool)(device, pool, flags);
}

static void buffer_known(struct vk_pool *p, VkCommandBuffer handle, bool secondary)
{
	struct vk_command_buffer *c = pool_get(&buffer_pool);

	if (!c)
		return;
	c->handle = handle;
	c->device = p->device;
	c->pool = p;
	c->secondary = secondary;
	c->next = p->buffers;
	if (c->next)
		c->next->before = c;
	p->buffers = c;
	handles_put(&buffers, (u64)handle, c);
}

VkResult w_vkAllocateCommandBuffers(VkDevice device, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *list)
{
	struct vk_device *d = vk_device_of(device);
	struct vk_pool *p = pool_of(d, info->commandPool);
	VkResult r = VK_CALL(d, vkAllocateCommandBuffers)(device, info, list);

	for (u32 i = 0; p && r == VK_SUCCESS && i < info->commandBufferCount; i++)
		buffer_known(p, list[i], info->level == VK_COMMAND_BUFFER_LEVEL_SECONDARY);
	return r;
}

void w_vkFreeCommandBuffers(VkDevice device, VkCommandPool pool, uint32_t count, const VkCommandBuffer *list)
{
	struct vk_device *d = vk_device_of(device);

	for (u32 i = 0; i < count; i++) {
		struct vk_command_buffer *c = vk_command_buffer_of(list[i]);

		if (c && vk_ours(d))
			buffer_gone(c);
	}
	VK_CALL(d, vkFreeCommandBuffers)(device, pool, count, list);
}

VkResult w_vkBeginCommandBuffer(VkCommandBuffer b, const VkCommandBufferBeginInfo *info)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);
	VkResult r = VK_CALL(DEVICE(c), vkBeginCommandBuffer)(b, info);

	if (c && r == VK_SUCCESS && vk_ours(c->device))
		vk_recording_begin(c, info->flags);
	return r;
}

VkResult w_vkResetCommandBuffer(VkCommandBuffer b, VkCommandBufferResetFlags flags)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);

	if (c && vk_ours(c->device))
		vk_recording_end(c);
	return VK_CALL(DEVICE(c), vkResetCommandBuffer)(b, flags);
}
