/*
 * vk_post.c - the command buffers that we add to a batch: they copy its stamps to memory that the host can read.
 */
#include "vk_plan.h"

static void copy_children(const struct vk_functions *fn, const struct vk_recording *r, VkCommandBuffer in, VkBuffer to, u64 offset)
{
	for (const struct vk_child *c = r->children; c; c = c->next) {
		VkBufferCopy range = { c->offset, offset, c->recording->ops * 16ull };

		if (!c->buffer)
			continue;
		fn->vkCmdCopyBuffer(in, c->buffer, to, 1, &range);
		offset += range.size;
	}
}

static void barrier(const struct vk_functions *fn, VkCommandBuffer in, VkPipelineStageFlags to, VkAccessFlags access)
{
	VkMemoryBarrier memory = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_TRANSFER_WRITE_BIT, access };

	fn->vkCmdPipelineBarrier(in, VK_PIPELINE_STAGE_TRANSFER_BIT, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

static void copy_part(const struct vk_functions *fn, struct vk_command_buffer *c, const struct vk_part *part, VkCommandBuffer in, VkBuffer to,
		      const u64 *base)
{
	const struct vk_recording *r = part->recording;
	u64 offset = (u64)((const char *)part->stamps - (const char *)base);

	if (r->stamped && r->ops) {
		vk_stamps_copy(c, in, to, offset);
		offset += r->ops * 16ull;
	}
	if (r->children) {
		barrier(fn, in, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
		copy_children(fn, r, in, to, offset);
	}
}

static bool post_begin(const struct vk_functions *fn, VkCommandBuffer post)
{
	VkCommandBufferBeginInfo begin = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
	};

	return fn->vkBeginCommandBuffer(post, &begin) == VK_SUCCESS;
}

/* What comes next may write where we read. */
static bool post_end(const struct vk_functions *fn, VkCommandBuffer post)
{
	barrier(fn, post, VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
	return fn->vkEndCommandBuffer(post) == VK_SUCCESS;
}

static struct vk_slot *new_slot(struct plan *p, bool whole)
{
	struct vk_slot *s = vk_ring_slot(p->queue, whole);

	if (!s)
		return NULL;
	s->next = p->submit->slots;
	p->submit->slots = s;
	return post_begin(&p->queue->device->fn, s->post) ? s : NULL;
}

/* The parts of a batch come in the order of its command buffers; the batch as a whole is the last. */
static bool copy_buffers(struct plan *p, struct batch *b, VkBuffer to, const u64 *base)
{
	const struct vk_functions *fn = &p->queue->device->fn;
	struct vk_part *part = b->parts;

	for (u32 i = 0; i < b->count && part; i++) {
		struct vk_command_buffer *c = vk_command_buffer_of(handle_in(b, i));

		if (!c || !part->recording || c->recording != part->recording)
			continue;
		if (part->early) {
			part->slot = new_slot(p, false);
			if (!part->slot)
				return false;
			copy_part(fn, c, part, part->slot->post, to, base);
			if (!post_end(fn, part->slot->post))
				return false;
		} else if (part->stamps) {
			copy_part(fn, c, part, b->slot->post, to, base);
		}
		part = part->next;
	}
	return true;
}

static bool record_post(struct plan *p, struct batch *b, VkBuffer to, const u64 *base)
{
	const struct vk_functions *fn = &p->queue->device->fn;
	const struct vk_part *whole = b->parts;
	VkCommandBuffer post = b->slot->post;

	if (b->whole)
		fn->vkCmdWriteTimestamp(post, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, b->slot->pool, 1);
	if (!copy_buffers(p, b, to, base))
		return false;
	while (b->whole && whole->recording)
		whole = whole->next;
	if (b->whole)
		fn->vkCmdCopyQueryPoolResults(post, b->slot->pool, 0, 2, to, (u64)((const char *)whole->stamps - (const char *)base), 8,
					      VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
	return post_end(fn, post);
}

/* From counts of words to places in memory. */
static void place_stamps(struct plan *p, u64 *at)
{
	for (u32 i = 0; i < p->batches; i++) {
		struct batch *b = &p->batch[i];
		const struct vk_part *end = NULL;

		for (u32 k = i + 1; k < p->batches && !end; k++)
			end = p->batch[k].parts;
		for (struct vk_part *part = b->parts; part && part != end; part = part->next)
			if (part->stamps)
				part->stamps = (const u64 *)((char *)at + (u64)part->stamps - 8);
		at += b->words;
	}
}

void vk_plan_untime(struct plan *p)
{
	for (struct vk_part *part = p->submit->parts; part; part = part->next) {
		part->stamps = NULL;
		part->slot = NULL;
	}
	for (u32 i = 0; i < p->batches; i++)
		p->batch[i].slot = NULL;
}

static bool prepare_slots(struct plan *p, const u64 *at)
{
	struct vk_queue *q = p->queue;

	place_stamps(p, (u64 *)at);
	for (u32 i = 0; i < p->batches; i++) {
		struct batch *b = &p->batch[i];

		if (!b->words)
			continue;
		b->slot = new_slot(p, b->whole);
		if (!b->slot || !record_post(p, b, q->arenas->buffer, q->arenas->at))
			return false;
	}
	return true;
}

/* What loses its times is seen from outside at least. */
static void add_whole(struct plan *p)
{
	for (const struct vk_part *part = p->submit->parts; part; part = part->next)
		if (!part->recording)
			return;
	p->works += p->submit->parts && vk_submit_part(p->submit, NULL);
}

void vk_plan_prepare(struct plan *p)
{
	u64 *at = p->words && p->marked ? vk_ring_take(p->queue, p->words) : NULL;

	if (at) {
		p->submit->arena = p->queue->arenas;
		p->submit->arena_end = p->queue->arenas->head;
	}
	if (at && prepare_slots(p, at))
		return;
	vk_plan_untime(p);
	add_whole(p);
}
