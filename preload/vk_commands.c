/*
 * vk_commands.c - the commands that make work: dispatches, rays, and all that moves bytes.
 *
 * All of them lie outside of render passes, so the stamps' queries may be reset at the same place.
 */
#include "vk.h"

/* The whole of a wrapper: `what` describes the op, given the command buffer c. */
#define OP(name, buffer, what, ...)                                                                                     \
	{                                                                                                               \
		struct vk_command_buffer *c = vk_command_buffer_of(buffer);                                             \
		struct vk_op op = what;                                                                                 \
		struct vk_stamp s = vk_op_begin(c, &op, CALLER());                                                      \
                                                                                                                        \
		VK_CALL(DEVICE(c), name)(buffer, __VA_ARGS__);                                                          \
		vk_op_end(c, s);                                                                                        \
	}
#define MOVE(command, what, moved, ...) ((struct vk_op){ .kind = what, .name = NAMED(#command), .bytes = moved, __VA_ARGS__ })
#define MOVE_PLAIN(...) MOVE(__VA_ARGS__, .in_order = true)     /* between buffers */

/* ---- kernels -------------------------------------------------------------------------------- */

static struct vk_op kernel(const struct vk_pipeline *p, u64 other_name, u64 x, u64 y, u64 z)
{
	return (struct vk_op){ .kind = WORK_KERNEL, .name = p ? p->name : other_name, .x = x, .y = y, .z = z, .local = p ? p->local : 0 };
}

static struct vk_op known_to_device(struct vk_op op)
{
	op.indirect = true;
	return op;
}

static struct vk_op in_order(struct vk_op op)
{
	op.in_order = true;
	return op;
}

static struct vk_op dispatch(struct vk_command_buffer *c, u64 x, u64 y, u64 z)
{
	struct vk_op op = in_order(kernel(c ? c->pipeline : NULL, NAMED("dispatch"), x, y, z));

	if (c && c->uses.count)
		vk_uses_tell(c, op.name);
	return op;
}

#define DISPATCH(x, y, z) dispatch(c, x, y, z)
#define RAYS(x, y, z) kernel(c ? c->rays : NULL, NAMED("trace rays"), x, y, z)

void w_vkCmdDispatch(VkCommandBuffer b, uint32_t x, uint32_t y, uint32_t z)
	OP(vkCmdDispatch, b, DISPATCH(x, y, z), x, y, z)

void w_vkCmdDispatchIndirect(VkCommandBuffer b, VkBuffer from, VkDeviceSize offset)
	OP(vkCmdDispatchIndirect, b, known_to_device(DISPATCH(0, 0, 0)), from, offset)

void w_vkCmdDispatchBase(VkCommandBuffer b, uint32_t bx, uint32_t by, uint32_t bz, uint32_t x, uint32_t y, uint32_t z)
	OP(vkCmdDispatchBase, b, DISPATCH(x, y, z), bx, by, bz, x, y, z)

#define TABLE const VkStridedDeviceAddressRegionKHR *

void w_vkCmdTraceRaysKHR(VkCommandBuffer b, TABLE from, TABLE miss, TABLE hit, TABLE call, uint32_t x, uint32_t y, uint32_t z)
	OP(vkCmdTraceRaysKHR, b, RAYS(x, y, z), from, miss, hit, call, x, y, z)

void w_vkCmdTraceRaysIndirectKHR(VkCommandBuffer b, TABLE from, TABLE miss, TABLE hit, TABLE call, VkDeviceAddress sizes)
	OP(vkCmdTraceRaysIndirectKHR, b, known_to_device(RAYS(0, 0, 0)), from, miss, hit, call, sizes)

void w_vkCmdTraceRaysIndirect2KHR(VkCommandBuffer b, VkDeviceAddress all)
	OP(vkCmdTraceRaysIndirect2KHR, b, known_to_device(RAYS(0, 0, 0)), all)

/* ---- bytes ---------------------------------------------------------------------------------- */

static struct vk_slab *slab_of(const struct vk_command_buffer *c, VkBuffer buffer)
{
	return c && c->recording && vk_ours(c->device) ? vk_slab_of(c->device, buffer) : NULL;
}

/* The bytes of regions, of whichever type: there is a VkBufferCopy in each. */
static u64 bytes_of_copy(const struct vk_command_buffer *c, VkBuffer from, VkBuffer to, u32 count, const void *first, size_t stride)
{
	struct vk_slab *read = slab_of(c, from), *written = slab_of(c, to);
	u64 sum = 0;

	for (u32 i = 0; i < count; i++) {
		const VkBufferCopy *r = (const void *)((const char *)first + i * stride);

		vk_slab_use(read, r->srcOffset, r->size, NAMED("vkCmdCopyBuffer"));
		vk_slab_use(written, r->dstOffset, r->size, NAMED("vkCmdCopyBuffer"));
		sum += r->size;
	}
	return sum;
}
_Static_assert(offsetof(VkBufferCopy2, size) - offsetof(VkBufferCopy2, srcOffset) == offsetof(VkBufferCopy, size), "as in the older one");

static u64 bytes_of_fill(const struct vk_command_buffer *c, VkBuffer buffer, u64 offset, u64 size)
{
	u64 whole;

	vk_slab_use(slab_of(c, buffer), offset, size, NAMED("vkCmdFillBuffer"));
	if (size != VK_WHOLE_SIZE)
		return size;
	whole = c ? vk_buffer_bytes(c->device, buffer) : 0;
	return whole > offset ? (whole - offset) & ~3ull : WORK_BYTES_UNKNOWN;
}

void w_vkCmdCopyBuffer(VkCommandBuffer b, VkBuffer from, VkBuffer to, uint32_t n, const VkBufferCopy *r)
	OP(vkCmdCopyBuffer, b, MOVE_PLAIN(vkCmdCopyBuffer, WORK_COPY, bytes_of_copy(c, from, to, n, r, sizeof *r)), from, to, n, r)

#define COPIED(i) bytes_of_copy(c, i->srcBuffer, i->dstBuffer, i->regionCount, &i->pRegions->srcOffset, sizeof *i->pRegions)

void w_vkCmdCopyBuffer2(VkCommandBuffer b, const VkCopyBufferInfo2 *i)
	OP(vkCmdCopyBuffer2, b, MOVE_PLAIN(vkCmdCopyBuffer, WORK_COPY, COPIED(i)), i)

void w_vkCmdFillBuffer(VkCommandBuffer b, VkBuffer to, VkDeviceSize offset, VkDeviceSize size, uint32_t data)
	OP(vkCmdFillBuffer, b, MOVE_PLAIN(vkCmdFillBuffer, WORK_FILL, bytes_of_fill(c, to, offset, size)), to, offset, size, data)

static u64 bytes_of_update(const struct vk_command_buffer *c, VkBuffer buffer, u64 offset, u64 size)
{
	vk_slab_use(slab_of(c, buffer), offset, size, NAMED("vkCmdUpdateBuffer"));
	return size;
}

void w_vkCmdUpdateBuffer(VkCommandBuffer b, VkBuffer to, VkDeviceSize offset, VkDeviceSize size, const void *data)
	OP(vkCmdUpdateBuffer, b, MOVE_PLAIN(vkCmdUpdateBuffer, WORK_WRITE, bytes_of_update(c, to, offset, size)), to, offset, size, data)

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

/* ---- acceleration structures: how large they are is known to the device only ------------------ */

#define BUILD ((struct vk_op){ .kind = WORK_OTHER, .name = NAMED("vkCmdBuildAccelerationStructures") })
#define BUILD_INFO const VkAccelerationStructureBuildGeometryInfoKHR *

void w_vkCmdBuildAccelerationStructuresKHR(VkCommandBuffer b, uint32_t n, BUILD_INFO i, const VkAccelerationStructureBuildRangeInfoKHR *const *r)
	OP(vkCmdBuildAccelerationStructuresKHR, b, BUILD, n, i, r)

void w_vkCmdBuildAccelerationStructuresIndirectKHR(VkCommandBuffer b, uint32_t n, BUILD_INFO i, const VkDeviceAddress *at, const uint32_t *strides,
						   const uint32_t *const *most)
	OP(vkCmdBuildAccelerationStructuresIndirectKHR, b, BUILD, n, i, at, strides, most)

#define COPY_STRUCTURE MOVE(vkCmdCopyAccelerationStructure, WORK_COPY, WORK_BYTES_UNKNOWN)

void w_vkCmdCopyAccelerationStructureKHR(VkCommandBuffer b, const VkCopyAccelerationStructureInfoKHR *i)
	OP(vkCmdCopyAccelerationStructureKHR, b, COPY_STRUCTURE, i)

void w_vkCmdCopyAccelerationStructureToMemoryKHR(VkCommandBuffer b, const VkCopyAccelerationStructureToMemoryInfoKHR *i)
	OP(vkCmdCopyAccelerationStructureToMemoryKHR, b, COPY_STRUCTURE, i)

void w_vkCmdCopyMemoryToAccelerationStructureKHR(VkCommandBuffer b, const VkCopyMemoryToAccelerationStructureInfoKHR *i)
	OP(vkCmdCopyMemoryToAccelerationStructureKHR, b, COPY_STRUCTURE, i)

/* ---- what the next of them runs --------------------------------------------------------------- */

void w_vkCmdBindPipeline(VkCommandBuffer b, VkPipelineBindPoint point, VkPipeline pipeline)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);

	if (c && point == VK_PIPELINE_BIND_POINT_COMPUTE)
		c->pipeline = vk_pipeline_of(c->device, pipeline);
	else if (c && point == VK_PIPELINE_BIND_POINT_RAY_TRACING_KHR)
		c->rays = vk_pipeline_of(c->device, pipeline);
	VK_CALL(DEVICE(c), vkCmdBindPipeline)(b, point, pipeline);
}
