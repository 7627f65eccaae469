/*
 * vk_record.c - command buffers, and the commands in them that make work.
 *
 *   vkBeginCommandBuffer     a new recording begins; the one before lives on in the submits that hold it
 *   vkCmdDispatch ...        an op of the recording: stamp, command, stamp
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
	c->pipeline = NULL;
	c->labels = 0;
	for (struct vk_range *r = c->ranges; r; r = r->next)
		r->used = 0;
}

void vk_recording_begin(struct vk_command_buffer *c)
{
	vk_recording_end(c);
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

struct stamp { VkQueryPool pool; u32 query; };          /* pool NULL: not timed */

static struct stamp op_begin(struct vk_command_buffer *c, const struct vk_op *what, struct caller at)
{
	struct vk_recording *r = c && vk_ours(c->device) ? c->recording : NULL;
	struct vk_op *op = r ? new_op(r) : NULL;
	struct stamp s = { 0 };

	if (!op)
		return s;
	*op = *what;
	op->site = site_number(at);
	op->label = c->labels && c->labels <= VK_LABELS ? c->label[c->labels - 1] : NULL;
	if (!r->stamped)
		return s;
	r->stamped = vk_stamps_for(c, r->ops - 1, &s.pool, &s.query);
	if (r->stamped)
		c->device->fn.vkCmdWriteTimestamp(c->handle, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, s.pool, s.query);
	return s;
}

static void op_end(struct vk_command_buffer *c, struct stamp s)
{
	if (s.pool)
		c->device->fn.vkCmdWriteTimestamp(c->handle, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, s.pool, s.query + 1);
}

/* The whole of a wrapper: `what` describes the op, given the command buffer c. */
#define OP(name, buffer, what, ...)                                                                                     \
	{                                                                                                               \
		struct vk_command_buffer *c = vk_command_buffer_of(buffer);                                             \
		struct vk_op op = what;                                                                                 \
		struct stamp s = op_begin(c, &op, CALLER());                                                            \
                                                                                                                        \
		VK_CALL(DEVICE(c), name)(buffer, __VA_ARGS__);                                                          \
		op_end(c, s);                                                                                           \
	}
#define MOVE(command, what, moved) ((struct vk_op){ .kind = what, .name = NAMED(#command), .bytes = moved })

static struct vk_op dispatch(const struct vk_command_buffer *c, u64 x, u64 y, u64 z, bool indirect)
{
	const struct vk_pipeline *p = c ? c->pipeline : NULL;

	return (struct vk_op){ .kind = WORK_KERNEL, .name = p ? p->name : NAMED("dispatch"), .x = x, .y = y, .z = z,
			       .local = p ? p->local : 0, .indirect = indirect };
}

void w_vkCmdDispatch(VkCommandBuffer b, uint32_t x, uint32_t y, uint32_t z)
	OP(vkCmdDispatch, b, dispatch(c, x, y, z, false), x, y, z)

void w_vkCmdDispatchIndirect(VkCommandBuffer b, VkBuffer from, VkDeviceSize offset)
	OP(vkCmdDispatchIndirect, b, dispatch(c, 0, 0, 0, true), from, offset)

void w_vkCmdDispatchBase(VkCommandBuffer b, uint32_t bx, uint32_t by, uint32_t bz, uint32_t x, uint32_t y, uint32_t z)
	OP(vkCmdDispatchBase, b, dispatch(c, x, y, z, false), bx, by, bz, x, y, z)

/* The sizes of regions, of whichever type. */
static u64 sum_of(u32 count, const void *first, size_t stride)
{
	u64 sum = 0;

	for (u32 i = 0; i < count; i++)
		sum += *(const VkDeviceSize *)((const char *)first + i * stride);
	return sum;
}

static u64 bytes_of_fill(const struct vk_command_buffer *c, VkBuffer buffer, u64 offset, u64 size)
{
	u64 whole;

	if (size != VK_WHOLE_SIZE)
		return size;
	whole = c ? vk_buffer_bytes(c->device, buffer) : 0;
	return whole > offset ? (whole - offset) & ~3ull : WORK_BYTES_UNKNOWN;
}

void w_vkCmdCopyBuffer(VkCommandBuffer b, VkBuffer from, VkBuffer to, uint32_t n, const VkBufferCopy *r)
	OP(vkCmdCopyBuffer, b, MOVE(vkCmdCopyBuffer, WORK_COPY, sum_of(n, &r->size, sizeof *r)), from, to, n, r)

void w_vkCmdCopyBuffer2(VkCommandBuffer b, const VkCopyBufferInfo2 *i)
	OP(vkCmdCopyBuffer2, b, MOVE(vkCmdCopyBuffer, WORK_COPY, sum_of(i->regionCount, &i->pRegions->size, sizeof *i->pRegions)), i)

void w_vkCmdFillBuffer(VkCommandBuffer b, VkBuffer to, VkDeviceSize offset, VkDeviceSize size, uint32_t data)
	OP(vkCmdFillBuffer, b, MOVE(vkCmdFillBuffer, WORK_FILL, bytes_of_fill(c, to, offset, size)), to, offset, size, data)

void w_vkCmdUpdateBuffer(VkCommandBuffer b, VkBuffer to, VkDeviceSize offset, VkDeviceSize size, const void *data)
	OP(vkCmdUpdateBuffer, b, MOVE(vkCmdUpdateBuffer, WORK_WRITE, size), to, offset, size, data)

/* The bytes of n regions r, going by the image given; the newer commands have all that in a structure i. */
#define REGIONS(image, n, r, layers_, extent_, ...)                                                                     \
	vk_bytes_of_regions(DEVICE(c), image, (struct vk_regions){                                                      \
		.count = n, .first = r, .stride = sizeof *(r), .layers = offsetof(__typeof__(*(r)), layers_),           \
		.extent = offsetof(__typeof__(*(r)), extent_), __VA_ARGS__ })
#define REGIONS2(image, ...) REGIONS(i->image, i->regionCount, i->pRegions, __VA_ARGS__)
#define BUFFER_REGIONS(image, n, r) REGIONS(image, n, r, imageSubresource, imageExtent, .in_buffer = true)

void w_vkCmdCopyImage(VkCommandBuffer b, VkImage from, VkImageLayout l, VkImage to, VkImageLayout m, uint32_t n, const VkImageCopy *r)
	OP(vkCmdCopyImage, b, MOVE(vkCmdCopyImage, WORK_COPY, REGIONS(from, n, r, srcSubresource, extent)), from, l, to, m, n, r)

void w_vkCmdCopyImage2(VkCommandBuffer b, const VkCopyImageInfo2 *i)
	OP(vkCmdCopyImage2, b, MOVE(vkCmdCopyImage, WORK_COPY, REGIONS2(srcImage, srcSubresource, extent)), i)

void w_vkCmdBlitImage(VkCommandBuffer b, VkImage from, VkImageLayout l, VkImage to, VkImageLayout m, uint32_t n, const VkImageBlit *r, VkFilter f)
	OP(vkCmdBlitImage, b, MOVE(vkCmdBlitImage, WORK_COPY, REGIONS(to, n, r, dstSubresource, dstOffsets, .corners = true)), from, l, to, m, n, r, f)

void w_vkCmdBlitImage2(VkCommandBuffer b, const VkBlitImageInfo2 *i)
	OP(vkCmdBlitImage2, b, MOVE(vkCmdBlitImage, WORK_COPY, REGIONS2(dstImage, dstSubresource, dstOffsets, .corners = true)), i)

void w_vkCmdResolveImage(VkCommandBuffer b, VkImage from, VkImageLayout l, VkImage to, VkImageLayout m, uint32_t n, const VkImageResolve *r)
	OP(vkCmdResolveImage, b, MOVE(vkCmdResolveImage, WORK_COPY, REGIONS(to, n, r, dstSubresource, extent)), from, l, to, m, n, r)

void w_vkCmdResolveImage2(VkCommandBuffer b, const VkResolveImageInfo2 *i)
	OP(vkCmdResolveImage2, b, MOVE(vkCmdResolveImage, WORK_COPY, REGIONS2(dstImage, dstSubresource, extent)), i)

void w_vkCmdCopyBufferToImage(VkCommandBuffer b, VkBuffer from, VkImage to, VkImageLayout l, uint32_t n, const VkBufferImageCopy *r)
	OP(vkCmdCopyBufferToImage, b, MOVE(vkCmdCopyBufferToImage, WORK_COPY, BUFFER_REGIONS(to, n, r)), from, to, l, n, r)

void w_vkCmdCopyBufferToImage2(VkCommandBuffer b, const VkCopyBufferToImageInfo2 *i)
	OP(vkCmdCopyBufferToImage2, b, MOVE(vkCmdCopyBufferToImage, WORK_COPY, BUFFER_REGIONS(i->dstImage, i->regionCount, i->pRegions)), i)

void w_vkCmdCopyImageToBuffer(VkCommandBuffer b, VkImage from, VkImageLayout l, VkBuffer to, uint32_t n, const VkBufferImageCopy *r)
	OP(vkCmdCopyImageToBuffer, b, MOVE(vkCmdCopyImageToBuffer, WORK_COPY, BUFFER_REGIONS(from, n, r)), from, l, to, n, r)

void w_vkCmdCopyImageToBuffer2(VkCommandBuffer b, const VkCopyImageToBufferInfo2 *i)
	OP(vkCmdCopyImageToBuffer2, b, MOVE(vkCmdCopyImageToBuffer, WORK_COPY, BUFFER_REGIONS(i->srcImage, i->regionCount, i->pRegions)), i)

void w_vkCmdClearColorImage(VkCommandBuffer b, VkImage to, VkImageLayout l, const VkClearColorValue *v, uint32_t n, const VkImageSubresourceRange *r)
	OP(vkCmdClearColorImage, b, MOVE(vkCmdClearColorImage, WORK_FILL, vk_bytes_of_ranges(DEVICE(c), to, n, r)), to, l, v, n, r)

void w_vkCmdClearDepthStencilImage(VkCommandBuffer b, VkImage to, VkImageLayout l, const VkClearDepthStencilValue *v, uint32_t n,
				   const VkImageSubresourceRange *r)
	OP(vkCmdClearDepthStencilImage, b, MOVE(vkCmdClearDepthStencilImage, WORK_FILL, vk_bytes_of_ranges(DEVICE(c), to, n, r)), to, l, v, n, r)

void w_vkCmdBindPipeline(VkCommandBuffer b, VkPipelineBindPoint point, VkPipeline pipeline)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);

	if (c && point == VK_PIPELINE_BIND_POINT_COMPUTE)
		c->pipeline = vk_pipeline_of(c->device, pipeline);
	VK_CALL(DEVICE(c), vkCmdBindPipeline)(b, point, pipeline);
}

/* ---- what is not timed piece by piece -------------------------------------------------------- */

static struct vk_device *note_other(VkCommandBuffer b)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);

	if (c && c->recording)
		c->recording->other = 1;
	return DEVICE(c);
}

void w_vkCmdBeginRenderPass(VkCommandBuffer b, const VkRenderPassBeginInfo *begin, VkSubpassContents contents)
{
	struct vk_device *d = note_other(b);

	VK_CALL(d, vkCmdBeginRenderPass)(b, begin, contents);
}

void w_vkCmdBeginRenderPass2(VkCommandBuffer b, const VkRenderPassBeginInfo *begin, const VkSubpassBeginInfo *subpass)
{
	struct vk_device *d = note_other(b);

	VK_CALL(d, vkCmdBeginRenderPass2)(b, begin, subpass);
}

void w_vkCmdBeginRendering(VkCommandBuffer b, const VkRenderingInfo *info)
{
	struct vk_device *d = note_other(b);

	VK_CALL(d, vkCmdBeginRendering)(b, info);
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

	if (!r)
		return;
	c->recording->other |= r->other;
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

void w_vkCmdExecuteCommands(VkCommandBuffer b, uint32_t count, const VkCommandBuffer *list)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);
	PFN_vkCmdExecuteCommands execute = VK_CALL(DEVICE(c), vkCmdExecuteCommands);
	bool known = c && c->recording && vk_ours(c->device), split = known && any_has_stamps(count, list);

	if (!split)
		execute(b, count, list);
	for (u32 i = 0; known && i < count; i++) {
		if (split)
			execute(b, 1, &list[i]);
		add_child(c, vk_command_buffer_of(list[i]), split);
	}
}

/* ---- labels ------------------------------------------------------------------------------------ */

static struct vk_device *label_begin(VkCommandBuffer b, const char *name)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);

	if (c && vk_ours(c->device) && c->labels++ < VK_LABELS)
		c->label[c->labels - 1] = name ? vk_text(name) : NULL;
	return DEVICE(c);
}

static struct vk_device *label_end(VkCommandBuffer b)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);

	if (c && c->labels)
		c->labels--;
	return DEVICE(c);
}

void w_vkCmdBeginDebugUtilsLabelEXT(VkCommandBuffer b, const VkDebugUtilsLabelEXT *label)
{
	struct vk_device *d = label_begin(b, label->pLabelName);

	VK_CALL(d, vkCmdBeginDebugUtilsLabelEXT)(b, label);
}

void w_vkCmdEndDebugUtilsLabelEXT(VkCommandBuffer b)
{
	struct vk_device *d = label_end(b);

	VK_CALL(d, vkCmdEndDebugUtilsLabelEXT)(b);
}

void w_vkCmdDebugMarkerBeginEXT(VkCommandBuffer b, const VkDebugMarkerMarkerInfoEXT *marker)
{
	struct vk_device *d = label_begin(b, marker->pMarkerName);

	VK_CALL(d, vkCmdDebugMarkerBeginEXT)(b, marker);
}

void w_vkCmdDebugMarkerEndEXT(VkCommandBuffer b)
{
	struct vk_device *d = label_end(b);

	VK_CALL(d, vkCmdDebugMarkerEndEXT)(b);
}
