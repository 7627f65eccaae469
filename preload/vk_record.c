/*
 * vk_record.c - what is recorded in a command buffer.
 *
 *   vkBeginCommandBuffer     a new recording begins; the one before lives on in the submits that hold it
 *   vkCmdDispatch ...        an op of the recording: stamp, command, stamp (vk_commands.c)
 *   vkCmdBeginRenderPass ... work that is not timed piece by piece
 *   vkCmdExecuteCommands     ops of another recording
 *
 * All these commands lie outside of render passes, so the stamps' queries may be reset at the same place. Calls that
 * concern one command buffer or its pool never run at the same time: the program sees to that.
 */
#include "vk.h"

static struct pool recording_pool = POOL(struct vk_recording), block_pool = POOL(struct vk_block), child_pool = POOL(struct vk_child);

/* ---- recordings ----------------------------------------------------------------------------- */

void vk_recording_drop(struct vk_recording *r)
{
	if (!r || __atomic_sub_fetch(&r->references, 1, __ATOMIC_ACQ_REL))
		return;
	for (struct vk_block *b = r->first, *next; b; b = next) {
		next = b->next;
		pool_put(&block_pool, b);
	}
	for (struct vk_child *c = r->children, *next; c; c = next) {
		next = c->next;
		vk_recording_drop(c->recording);
		pool_put(&child_pool, c);
	}
	pool_put(&recording_pool, r);
}

void vk_recording_end(struct vk_command_buffer *c)
{
	vk_recording_drop(c->recording);
	c->recording = NULL;
	c->pipeline = c->rays = NULL;
	c->uses.count = 0;
	c->labels = 0;
	for (struct vk_range *r = c->ranges; r; r = r->next)
		r->used = 0;
}

void vk_recording_begin(struct vk_command_buffer *c, VkCommandBufferUsageFlags flags)
{
	vk_recording_end(c);
	c->rendering = c->secondary && flags & VK_COMMAND_BUFFER_USAGE_RENDER_PASS_CONTINUE_BIT;
	if (!vk_wanted())
		return;
	c->recording = pool_get(&recording_pool);
	if (!c->recording)
		return;
	c->recording->references = 1;
	c->recording->stamped = c->pool->stamps;
	c->recording->children_end = &c->recording->children;
}

static struct vk_op *new_op(struct vk_recording *r)
{
	struct vk_block *b = r->last;

	if (!b || b->used == VK_BLOCK_OPS) {
		b = pool_get(&block_pool);
		if (!b)
			return NULL;
		if (r->last)
			r->last->next = b;
		else
			r->first = b;
		r->last = b;
	}
	r->ops++;
	r->total++;
	return &b->op[b->used++];
}

/* ---- ops ------------------------------------------------------------------------------------ */

/* What the stamp behind it waits for. Where nothing is left to wait for, asking for it would make llvmpipe wake all its rasteriser's threads. */
static VkPipelineStageFlagBits end_of(const struct vk_device *d, const struct vk_op *op)
{
	return d->synchronous && op->in_order ? VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT : VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;
}

struct vk_stamp vk_op_begin(struct vk_command_buffer *c, const struct vk_op *what, struct caller at)
{
	struct vk_recording *r = c && vk_ours(c->device) ? c->recording : NULL;
	struct vk_op *op = r ? new_op(r) : NULL;
	struct vk_stamp s = { 0 };

	if (!op)
		return s;
	*op = *what;
	r->late |= !what->in_order;
	op->site = site_number(at);
	op->label = c->labels && c->labels <= VK_LABELS ? c->label[c->labels - 1] : NULL;
	if (!r->stamped)
		return s;
	r->stamped = vk_stamps_for(c, r->ops - 1, &s);
	s.end = end_of(c->device, what);
	if (r->stamped)
		vk_queries_stamp(c->device, c->handle, what->kind == WORK_MARK ? VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT :
				 VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, s.queries, s.query);
	return s;
}

/* It must be on the stack while the driver is at work for it: by its name the collector knows whose the driver's memory is. */
void vk_op_end(struct vk_command_buffer *c, struct vk_stamp s)
{
	if (s.queries)
		vk_queries_stamp(c->device, c->handle, s.end, s.queries, s.query + 1);
	__asm__ volatile("");
}

/* ---- what is not timed piece by piece -------------------------------------------------------- */

static struct vk_device *rendering(VkCommandBuffer b, bool begins)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);

	if (c) {
		c->rendering = begins;
		c->device->rendered = true;
	}
	if (c && c->recording)
		c->recording->other = c->recording->late = 1;
	return DEVICE(c);
}

void w_vkCmdBeginRenderPass(VkCommandBuffer b, const VkRenderPassBeginInfo *begin, VkSubpassContents contents)
{
	struct vk_device *d = rendering(b, true);

	VK_CALL(d, vkCmdBeginRenderPass)(b, begin, contents);
}

void w_vkCmdBeginRenderPass2(VkCommandBuffer b, const VkRenderPassBeginInfo *begin, const VkSubpassBeginInfo *subpass)
{
	struct vk_device *d = rendering(b, true);

	VK_CALL(d, vkCmdBeginRenderPass2)(b, begin, subpass);
}

void w_vkCmdBeginRendering(VkCommandBuffer b, const VkRenderingInfo *info)
{
	struct vk_device *d = rendering(b, true);

	VK_CALL(d, vkCmdBeginRendering)(b, info);
}

void w_vkCmdEndRenderPass(VkCommandBuffer b)
{
	struct vk_device *d = rendering(b, false);

	VK_CALL(d, vkCmdEndRenderPass)(b);
}

void w_vkCmdEndRenderPass2(VkCommandBuffer b, const VkSubpassEndInfo *subpass)
{
	struct vk_device *d = rendering(b, false);

	VK_CALL(d, vkCmdEndRenderPass2)(b, subpass);
}

void w_vkCmdEndRendering(VkCommandBuffer b)
{
	struct vk_device *d = rendering(b, false);

	VK_CALL(d, vkCmdEndRendering)(b);
}

/* ---- secondary command buffers ---------------------------------------------------------------- */

static bool has_stamps(const struct vk_command_buffer *c)
{
	return c && c->recording && c->recording->ops && c->recording->stamped;
}

static bool any_has_stamps(u32 count, const VkCommandBuffer *list)
{
	for (u32 i = 0; i < count; i++)
		if (has_stamps(vk_command_buffer_of(list[i])))
			return true;
	return false;
}

/* `execute`: the secondary has just been executed, and its stamps may be taken before it is executed again. */
static void add_child(struct vk_command_buffer *c, struct vk_command_buffer *secondary, bool executed)
{
	struct vk_recording *r = secondary ? secondary->recording : NULL;
	struct vk_child *child;

	if (!r) {
		c->recording->late = 1;
		return;
	}
	c->recording->other |= r->other;
	c->recording->late |= r->late;
	child = r->ops ? pool_get(&child_pool) : NULL;
	if (!child)
		return;
	__atomic_add_fetch(&r->references, 1, __ATOMIC_RELAXED);
	child->recording = r;
	if (executed && has_stamps(secondary) && c->pool->stamps)
		vk_stamps_keep(c, secondary, child);
	c->recording->total += r->ops;
	*c->recording->children_end = child;
	c->recording->children_end = &child->next;
}

/* Results of what is inside would have to be carried through every level: it is shown as a part of its batch. */
static void note_nested(struct vk_command_buffer *c)
{
	static u32 told;

	c->recording->other = c->recording->late = 1;
	if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		notice_note("Vulkan: secondary command buffers are executed in secondary ones; what is in those is timed with its batch only");
}

void w_vkCmdExecuteCommands(VkCommandBuffer b, uint32_t count, const VkCommandBuffer *list)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);
	PFN_vkCmdExecuteCommands execute = VK_CALL(DEVICE(c), vkCmdExecuteCommands);
	bool known = c && c->recording && vk_ours(c->device), split = known && any_has_stamps(count, list);

	if (known && c->secondary) {
		note_nested(c);
		known = split = false;
	}
	if (!split)
		execute(b, count, list);
	for (u32 i = 0; known && i < count; i++) {
		if (split)
			execute(b, 1, &list[i]);
		add_child(c, vk_command_buffer_of(list[i]), split);
	}
}
