/*
 * vk_buffer.c - buffers of our own on a device: for results, for stamps, for the bell.
 */
#include "vk.h"

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

void vk_barrier(const struct vk_device *d, VkCommandBuffer in, VkPipelineStageFlags from, VkPipelineStageFlags to, VkAccessFlags access)
{
	VkMemoryBarrier memory = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_TRANSFER_WRITE_BIT, access };

	d->fn.vkCmdPipelineBarrier(in, from, to, 0, 1, &memory, 0, NULL, 0, NULL);
}
