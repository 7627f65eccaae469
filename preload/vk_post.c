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

/* Copies the results of a part to its place. */
static void copy_part(const struct vk_device *d, const struct vk_part *part, const struct vk_slot *s)
{
	const struct vk_recording *r = part->recording;
	u64 offset = s->offset + (u64)((const char *)part->stamps - (const char *)s->at);

	if (r->stamped && r->ops) {
		vk_stamps_copy(part->from, s->post, s->buffer, offset);
		offset += r->ops * 16ull;
	}
	if (r->children) {
		vk_barrier(d, s->post, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
		copy_children(&d->fn, r, s->post, s->buffer, offset);
	}
}

/* ---- one slot ---------------------------------------------------------------------------------------------- */

/* The parts whose results a slot takes: the one that must be early, or all the others of the batch. */
static bool is_for(const struct vk_part *part, const struct vk_part *early)
{
	return early ? part == early : part->words && !part->early;
}

#define EACH_PART(part, b) (struct vk_part *part = (b)->first, *const end_ = part ? (b)->last->next : NULL; part != end_; part = part->next)

static void describe(struct vk_content *c, const struct vk_part *part)
{
	c->words += part->words;
	if (!part->recording)
		c->whole = true;
	else if (part->recording->stamped)
		vk_stamps_tell(part->from, c);
	c->odd |= part->recording && part->recording->children;
}

/* What comes next may write where we read. */
static bool record(const struct vk_device *d, const struct batch *b, const struct vk_part *early, const struct vk_slot *s)
{
	VkCommandBufferBeginInfo begin = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO };

	if (d->fn.vkBeginCommandBuffer(s->post, &begin) != VK_SUCCESS)
		return false;
	if (s->content.whole)
		vk_queries_stamp(d, s->post, d->synchronous && !s->content.late ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT,
				 &s->around, 1);
	for EACH_PART(part, b) {
		if (!is_for(part, early))
			continue;
		if (part->recording)
			copy_part(d, part, s);
		else if (!s->around.at)
			vk_queries_copy(d, s->post, &s->around, 2, s->buffer, s->offset + (u64)((const char *)part->stamps - (const char *)s->at));
	}
	vk_barrier(d, s->post, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT,
		   VK_ACCESS_HOST_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
	return d->fn.vkEndCommandBuffer(s->post) == VK_SUCCESS;
}

/* Where those of a batch as a whole will be: copied there, or where we take them ourselves, as nobody else uses the slot before they are told. */
static const u64 *stamps_around(struct vk_slot *s, const u64 *copied)
{
	if (!s->around.at)
		return copied;
	s->around.at[0] = s->around.at[1] = 0;
	return s->around.at;
}

/* NULL: there is none to be had. */
static struct vk_slot *prepare_slot(struct plan *p, const struct batch *b, const struct vk_part *early)
{
	struct vk_content wanted = { 0 };
	struct vk_slot *s;
	u64 *at;

	for EACH_PART(part, b)
		if (is_for(part, early))
			describe(&wanted, part);
	wanted.late = wanted.whole && b->late;
	s = vk_ring_slot(p->queue, &wanted);
	if (!s)
		return NULL;
	s->next = p->submit->slots;
	p->submit->slots = s;
	at = s->at;
	for EACH_PART(part, b)
		if (is_for(part, early)) {
			part->stamps = part->recording ? at : stamps_around(s, at);
			at += part->words;
		}
	if (!s->content.odd)
		return s;
	s->content = wanted;
	if (record(p->queue->device, b, early, s))
		return s;
	s->content.odd = true;
	return NULL;
}

/* ---- a submit ------------------------------------------------------------------------------------------------ */

static bool prepare_batch(struct plan *p, struct batch *b)
{
	for EACH_PART(part, b)
		if (part->early && !(part->slot = prepare_slot(p, b, part)))
			return false;
	b->slot = prepare_slot(p, b, NULL);
	return b->slot;
}

static bool prepare(struct plan *p)
{
	for (u32 i = 0; i < p->batches; i++)
		if (p->batch[i].timed && !prepare_batch(p, &p->batch[i]))
			return false;
	return true;
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
	if (p->marked && prepare(p))
		return;
	vk_plan_untime(p);
	add_whole(p);
}
