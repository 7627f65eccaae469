/*
 * vk_queries.c - where stamps are kept until they are copied: in a query pool, or where we take them ourselves (vk_bell.c), in a
 * buffer that the host sees.
 */
#include "vk.h"

bool vk_queries_make(struct vk_device *d, u32 count, struct vk_queries *q)
{
	VkQueryPoolCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = count,
	};
	void *at = NULL;
	bool good;

	*q = (struct vk_queries){ 0 };
	if (!d->bell)
		return d->fn.vkCreateQueryPool(d->handle, &info, NULL, &q->pool) == VK_SUCCESS;
	good = vk_buffer_make(d, count * sizeof(u64), true, &q->buffer, &q->memory, &at);
	q->at = at;
	return good;
}

void vk_queries_free(struct vk_device *d, const struct vk_queries *q)
{
	if (q->pool)
		d->fn.vkDestroyQueryPool(d->handle, q->pool, NULL);
	else
		vk_buffer_free(d, q->buffer, q->memory);
}

void vk_queries_reset(const struct vk_device *d, VkCommandBuffer in, const struct vk_queries *q, u32 count)
{
	if (q->pool) {
		d->fn.vkCmdResetQueryPool(in, q->pool, 0, count);
		return;
	}
	vk_barrier(d, in, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
	d->fn.vkCmdFillBuffer(in, q->buffer, 0, count * sizeof(u64), 0);
}

/*
 * Once it has rendered, llvmpipe takes a stamp when the rasteriser gets there, which may be after the dispatch that follows:
 * a barrier makes it get there now.
 */
static void settle(const struct vk_device *d, VkCommandBuffer in)
{
	if (unlikely(d->rendered && d->synchronous))
		vk_barrier(d, in, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
}

void vk_queries_stamp(const struct vk_device *d, VkCommandBuffer in, VkPipelineStageFlagBits stage, const struct vk_queries *q, u32 query)
{
	if (!q->pool) {
		vk_bell_record(d, in, stage != VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, query, &q->at[query]);
		return;
	}
	d->fn.vkCmdWriteTimestamp(in, stage, q->pool, query);
	settle(d, in);
}

void vk_queries_copy(const struct vk_device *d, VkCommandBuffer in, const struct vk_queries *q, u32 count, VkBuffer to, u64 offset)
{
	VkBufferCopy range = { 0, offset, count * sizeof(u64) };

	if (!q->pool) {
		vk_barrier(d, in, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
		d->fn.vkCmdCopyBuffer(in, q->buffer, to, 1, &range);
		return;
	}
	d->fn.vkCmdCopyQueryPoolResults(in, q->pool, 0, count, to, offset, 8, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
	d->fn.vkCmdResetQueryPool(in, q->pool, 0, count);       /* drivers may keep memory for every stamp until then */
}
