/*
 * vk_texels.c - images of many formats, moved about; the bytes that it says were moved are those that it finds changed.
 *
 *   vk_texels VERSION [FORMAT]      from 13 on by the newer commands; FORMAT: that one only, whose bytes nobody can know
 *
 * Images are filled with NEW or OLD bytes and read back to a buffer of CLEAN ones: what became NEW was copied between them,
 * what did not stay CLEAN was copied to the buffer.
 */
#include "vk_client.h"

enum { CLEAN = 0x11, OLD = 0x3b, NEW = 0x3f };          /* also as parts of numbers: depths lie between 0 and 1 */
enum { WIDTH = 42, HEIGHT = 23, LAYERS = 3, LEVELS = 2, AREA = 3 << 14 };

static struct client c;
static int newer, unknown;
static VkCommandBuffer b;

/* ---- commands in either form ------------------------------------------------------------------------------ */

static const VkImageLayout G = VK_IMAGE_LAYOUT_GENERAL;

static void to_image(VkImage image, uint64_t offset, VkImageSubresourceLayers layers, VkExtent3D extent)
{
	VkBufferImageCopy r = { .bufferOffset = offset, .imageSubresource = layers, .imageExtent = extent };
	VkBufferImageCopy2 r2 = { VK_STRUCTURE_TYPE_BUFFER_IMAGE_COPY_2, .bufferOffset = offset, .imageSubresource = layers, .imageExtent = extent };
	VkCopyBufferToImageInfo2 all = { VK_STRUCTURE_TYPE_COPY_BUFFER_TO_IMAGE_INFO_2, NULL, c.buffer, image, G, 1, &r2 };

	if (newer)
		vkCmdCopyBufferToImage2(b, &all);
	else
		vkCmdCopyBufferToImage(b, c.buffer, image, G, 1, &r);
	client_barrier(b);
}

static void to_buffer(VkImage image, uint64_t offset, VkImageSubresourceLayers layers, VkExtent3D extent)
{
	VkBufferImageCopy r = { .bufferOffset = offset, .imageSubresource = layers, .imageExtent = extent };
	VkBufferImageCopy2 r2 = { VK_STRUCTURE_TYPE_BUFFER_IMAGE_COPY_2, .bufferOffset = offset, .imageSubresource = layers, .imageExtent = extent };
	VkCopyImageToBufferInfo2 all = { VK_STRUCTURE_TYPE_COPY_IMAGE_TO_BUFFER_INFO_2, NULL, image, G, c.buffer, 1, &r2 };

	if (newer)
		vkCmdCopyImageToBuffer2(b, &all);
	else
		vkCmdCopyImageToBuffer(b, image, G, c.buffer, 1, &r);
	client_barrier(b);
}

static void copy(VkImage from, VkImage to, uint32_t count, const VkImageCopy *r)
{
	VkImageCopy2 r2[2];
	VkCopyImageInfo2 all = { VK_STRUCTURE_TYPE_COPY_IMAGE_INFO_2, NULL, from, G, to, G, count, r2 };

	for (uint32_t i = 0; i < count; i++)
		r2[i] = (VkImageCopy2){ VK_STRUCTURE_TYPE_IMAGE_COPY_2, NULL, r[i].srcSubresource, r[i].srcOffset, r[i].dstSubresource, r[i].dstOffset, r[i].extent };
	if (newer)
		vkCmdCopyImage2(b, &all);
	else
		vkCmdCopyImage(b, from, G, to, G, count, r);
	client_barrier(b);
}

static void blit(VkImage from, VkImage to, VkImageBlit r)
{
	VkImageBlit2 r2 = { VK_STRUCTURE_TYPE_IMAGE_BLIT_2, NULL, r.srcSubresource, { r.srcOffsets[0], r.srcOffsets[1] }, r.dstSubresource,
			    { r.dstOffsets[0], r.dstOffsets[1] } };
	VkBlitImageInfo2 all = { VK_STRUCTURE_TYPE_BLIT_IMAGE_INFO_2, NULL, from, G, to, G, 1, &r2, VK_FILTER_NEAREST };

	if (newer)
		vkCmdBlitImage2(b, &all);
	else
		vkCmdBlitImage(b, from, G, to, G, 1, &r, VK_FILTER_NEAREST);
	client_barrier(b);
}

static void resolve(VkImage from, VkImage to, VkImageResolve r)
{
	VkImageResolve2 r2 = { VK_STRUCTURE_TYPE_IMAGE_RESOLVE_2, NULL, r.srcSubresource, r.srcOffset, r.dstSubresource, r.dstOffset, r.extent };
	VkResolveImageInfo2 all = { VK_STRUCTURE_TYPE_RESOLVE_IMAGE_INFO_2, NULL, from, G, to, G, 1, &r2 };

	if (newer)
		vkCmdResolveImage2(b, &all);
	else
		vkCmdResolveImage(b, from, G, to, G, 1, &r);
	client_barrier(b);
}

/* ---- images -------------------------------------------------------------------------------------------------- */

struct picture { VkImage image; VkDeviceMemory memory; };

static VkImageAspectFlags aspects_of(VkFormat format)
{
	if (format < VK_FORMAT_D16_UNORM || format > VK_FORMAT_D32_SFLOAT_S8_UINT)
		return VK_IMAGE_ASPECT_COLOR_BIT;
	return (format != VK_FORMAT_S8_UINT ? VK_IMAGE_ASPECT_DEPTH_BIT : 0) | (format > VK_FORMAT_D32_SFLOAT ? VK_IMAGE_ASPECT_STENCIL_BIT : 0);
}

static struct picture picture(VkFormat format, VkImageType type, VkExtent3D extent, uint32_t layers, VkSampleCountFlagBits samples)
{
	VkImageCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = type, .format = format, .extent = extent,
		.mipLevels = samples == 1 ? LEVELS : 1, .arrayLayers = layers, .samples = samples, .tiling = VK_IMAGE_TILING_OPTIMAL,
		.usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT | (samples > 1 ? VK_IMAGE_USAGE_COLOR_ATTACHMENT_BIT : 0),
	};
	VkImageMemoryBarrier change = {
		.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER, .dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT, .newLayout = G,
		.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED, .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
		.subresourceRange = { aspects_of(format), 0, VK_REMAINING_MIP_LEVELS, 0, VK_REMAINING_ARRAY_LAYERS },
	};
	VkMemoryRequirements need;
	struct picture p;

	GOOD(vkCreateImage(c.device, &info, NULL, &p.image));
	vkGetImageMemoryRequirements(c.device, p.image, &need);
	p.memory = client_memory(&c, need.size, need.memoryTypeBits);
	GOOD(vkBindImageMemory(c.device, p.image, p.memory, 0));
	change.image = p.image;
	vkCmdPipelineBarrier(b, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0, NULL, 1, &change);
	return p;
}

static void drop(struct picture p)
{
	vkDestroyImage(c.device, p.image, NULL);
	vkFreeMemory(c.device, p.memory, NULL);
}

/* ---- books ----------------------------------------------------------------------------------------------------- */

static uint8_t *area(int n) { return (uint8_t *)c.data + n * AREA; }

static void begin(void)
{
	memset(area(0), NEW, AREA);
	memset(area(1), OLD, AREA);
	memset(area(2), CLEAN, AREA * 2);
	client_begin(b, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, 0);
}

static void end(void)
{
	GOOD(vkEndCommandBuffer(b));
	client_submit(&c, b, VK_NULL_HANDLE);
	GOOD(vkQueueWaitIdle(c.queue));
}

static uint64_t changed(int n, uint8_t to)
{
	uint64_t count = 0;

	for (int i = 0; i < AREA; i++)
		count += to != CLEAN ? area(n)[i] == to : area(n)[i] != CLEAN;
	return count;
}

static void truth(const char *name, int count, uint64_t bytes)
{
	say("work %s %d %llu 0 0\n", name, count, unknown ? ~0ull : (unsigned long long)bytes);
}

/* ---- scenes ----------------------------------------------------------------------------------------------------- */

static const VkExtent3D whole = { WIDTH, HEIGHT, 1 };

/* Two images: parts of the one are copied to the other, which is read back. */
static void copies(VkFormat format, VkImageAspectFlags aspect)
{
	VkImageSubresourceLayers all = { aspect, 0, 0, LAYERS };
	VkImageCopy parts[2] = {
		{ { aspect, 0, 0, 1 }, { 8, 8, 0 }, { aspect, 0, 0, 1 }, { 8, 8, 0 }, { WIDTH - 8, HEIGHT - 8, 1 } },
		{ { aspect, 0, 1, 2 }, { 0, 0, 0 }, { aspect, 0, 1, 2 }, { 0, 4, 0 }, { 16, 12, 1 } },
	};
	struct picture p[2];

	begin();
	p[0] = picture(format, VK_IMAGE_TYPE_2D, whole, LAYERS, 1);
	p[1] = picture(format, VK_IMAGE_TYPE_2D, whole, LAYERS, 1);
	to_image(p[0].image, 0, all, whole);
	to_image(p[1].image, AREA, all, whole);
	copy(p[0].image, p[1].image, 2, parts);
	to_buffer(p[1].image, 2 * AREA, all, whole);
	end();
	if (!changed(2, CLEAN) || !changed(2, NEW))
		say("format %d: nothing came back\n", format);
	truth("vkCmdCopyBufferToImage", 2, changed(2, CLEAN));
	truth("vkCmdCopyImage", 1, changed(2, NEW));
	truth("vkCmdCopyImageToBuffer", 1, changed(2, CLEAN));
	drop(p[0]);
	drop(p[1]);
}

/* All levels of some layers are cleared, and read back one by one. */
static void clear(void)
{
	VkImageSubresourceRange range = { VK_IMAGE_ASPECT_COLOR_BIT, 0, VK_REMAINING_MIP_LEVELS, 1, VK_REMAINING_ARRAY_LAYERS };
	VkClearColorValue value = { .uint32 = { NEW, NEW, NEW, NEW } };
	struct picture p;

	begin();
	p = picture(VK_FORMAT_R8G8B8A8_UINT, VK_IMAGE_TYPE_2D, whole, LAYERS, 1);
	vkCmdClearColorImage(b, p.image, G, &value, 1, &range);
	client_barrier(b);
	to_buffer(p.image, 2 * AREA, (VkImageSubresourceLayers){ VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 2 }, whole);
	to_buffer(p.image, 3 * AREA, (VkImageSubresourceLayers){ VK_IMAGE_ASPECT_COLOR_BIT, 1, 1, 2 }, (VkExtent3D){ WIDTH / 2, HEIGHT / 2, 1 });
	end();
	truth("vkCmdClearColorImage", 1, changed(2, NEW) + changed(3, NEW));
	truth("vkCmdCopyImageToBuffer", 1, changed(2, NEW));
	truth("vkCmdCopyImageToBuffer", 1, changed(3, NEW));
	drop(p);
}

/* The same of depth, of stencil, or of both; these can be read back one after the other only. */
static void clear_depth(VkFormat format, VkImageAspectFlags aspects)
{
	VkImageSubresourceRange range = { aspects, 0, VK_REMAINING_MIP_LEVELS, 1, VK_REMAINING_ARRAY_LAYERS };
	VkClearDepthStencilValue value = { .depth = 0x3f3f / 65535.0f, .stencil = NEW };
	uint64_t bytes = 0;
	struct picture p;

	if (format != VK_FORMAT_D16_UNORM)
		memset(&value.depth, NEW, sizeof value.depth);
	for (VkImageAspectFlags one = VK_IMAGE_ASPECT_DEPTH_BIT; one <= VK_IMAGE_ASPECT_STENCIL_BIT; one <<= 1) {
		if (!(aspects & one))
			continue;
		begin();
		p = picture(format, VK_IMAGE_TYPE_2D, whole, LAYERS, 1);
		vkCmdClearDepthStencilImage(b, p.image, G, &value, 1, &range);
		client_barrier(b);
		to_buffer(p.image, 2 * AREA, (VkImageSubresourceLayers){ one, 0, 1, 2 }, whole);
		to_buffer(p.image, 3 * AREA, (VkImageSubresourceLayers){ one, 1, 1, 2 }, (VkExtent3D){ WIDTH / 2, HEIGHT / 2, 1 });
		end();
		truth("vkCmdCopyImageToBuffer", 1, changed(2, NEW));
		truth("vkCmdCopyImageToBuffer", 1, changed(3, NEW));
		bytes += changed(2, NEW) + changed(3, NEW);
		drop(p);
	}
	truth("vkCmdClearDepthStencilImage", (aspects & VK_IMAGE_ASPECT_DEPTH_BIT ? 1 : 0) + (aspects & VK_IMAGE_ASPECT_STENCIL_BIT ? 1 : 0), bytes);
}

/* From the second level to a part of the first, larger and mirrored. */
static void blits(void)
{
	VkImageSubresourceLayers layers[2] = { { VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, LAYERS }, { VK_IMAGE_ASPECT_COLOR_BIT, 1, 0, LAYERS } };
	VkExtent3D half = { WIDTH / 2, HEIGHT / 2, 1 };
	struct picture p;

	begin();
	p = picture(VK_FORMAT_R16G16B16A16_SFLOAT, VK_IMAGE_TYPE_2D, whole, LAYERS, 1);
	to_image(p.image, 0, layers[1], half);
	to_image(p.image, AREA, layers[0], whole);
	blit(p.image, p.image, (VkImageBlit){ layers[1], { { 0, 0, 0 }, { 21, 11, 1 } }, layers[0], { { 40, 2, 0 }, { 10, 22, 1 } } });
	to_buffer(p.image, 2 * AREA, layers[0], whole);
	to_buffer(p.image, 3 * AREA, layers[1], half);
	end();
	truth("vkCmdBlitImage", 1, changed(2, NEW));
	truth("vkCmdCopyBufferToImage", 1, changed(2, CLEAN));
	truth("vkCmdCopyImageToBuffer", 1, changed(2, CLEAN));
	truth("vkCmdCopyBufferToImage", 1, changed(3, CLEAN));
	truth("vkCmdCopyImageToBuffer", 1, changed(3, CLEAN));
	drop(p);
}

static void resolves(void)
{
	VkImageSubresourceLayers one = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1 };
	VkImageSubresourceRange range = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 };
	VkClearColorValue value = { .float32 = { NEW / 255.0f, NEW / 255.0f, NEW / 255.0f, NEW / 255.0f } };
	struct picture p[2];

	begin();
	p[0] = picture(VK_FORMAT_R8G8B8A8_UNORM, VK_IMAGE_TYPE_2D, whole, 1, VK_SAMPLE_COUNT_4_BIT);
	p[1] = picture(VK_FORMAT_R8G8B8A8_UNORM, VK_IMAGE_TYPE_2D, whole, 1, 1);
	vkCmdClearColorImage(b, p[0].image, G, &value, 1, &range);
	client_barrier(b);
	to_image(p[1].image, AREA, one, whole);
	resolve(p[0].image, p[1].image, (VkImageResolve){ one, { 0, 0, 0 }, one, { 5, 5, 0 }, { 30, 10, 1 } });
	to_buffer(p[1].image, 2 * AREA, one, whole);
	end();
	truth("vkCmdClearColorImage", 1, changed(2, CLEAN) * 4);        /* of its samples nothing can be read back */
	truth("vkCmdCopyBufferToImage", 1, changed(2, CLEAN));
	truth("vkCmdResolveImage", 1, changed(2, NEW));
	truth("vkCmdCopyImageToBuffer", 1, changed(2, CLEAN));
	drop(p[0]);
	drop(p[1]);
}

/* Layers of two dimensions from slices of three, and back. */
static void slices(void)
{
	VkImageSubresourceLayers deep = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1 }, flat = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, LAYERS };
	VkImageCopy parts[2] = { { deep, { 0, 0, 2 }, flat, { 0, 0, 0 }, { 20, 20, LAYERS } }, { flat, { 0, 0, 0 }, deep, { 0, 0, 0 }, { 7, 5, LAYERS } } };
	VkExtent3D solid = { WIDTH, HEIGHT, 5 };
	struct picture p[2];

	begin();
	p[0] = picture(VK_FORMAT_R8G8_UNORM, VK_IMAGE_TYPE_3D, solid, 1, 1);
	p[1] = picture(VK_FORMAT_R8G8_UNORM, VK_IMAGE_TYPE_2D, whole, LAYERS, 1);
	to_image(p[0].image, 0, deep, solid);
	to_image(p[1].image, AREA, flat, whole);
	copy(p[0].image, p[1].image, 1, &parts[0]);
	to_buffer(p[1].image, 2 * AREA, flat, whole);
	to_image(p[0].image, AREA, deep, solid);
	copy(p[1].image, p[0].image, 1, &parts[1]);
	to_buffer(p[0].image, 3 * AREA, deep, solid);
	end();
	truth("vkCmdCopyImage", 1, changed(2, NEW));
	truth("vkCmdCopyImage", 1, changed(3, NEW));
	truth("vkCmdCopyBufferToImage", 2, changed(3, CLEAN));
	truth("vkCmdCopyBufferToImage", 1, changed(2, CLEAN));
	truth("vkCmdCopyImageToBuffer", 1, changed(2, CLEAN));
	truth("vkCmdCopyImageToBuffer", 1, changed(3, CLEAN));
	drop(p[0]);
	drop(p[1]);
}

static int can_be_moved(VkFormat format)
{
	VkFormatProperties p;

	vkGetPhysicalDeviceFormatProperties(c.physical, format, &p);
	return (p.optimalTilingFeatures & (VK_FORMAT_FEATURE_TRANSFER_SRC_BIT | VK_FORMAT_FEATURE_TRANSFER_DST_BIT)) ==
	       (VK_FORMAT_FEATURE_TRANSFER_SRC_BIT | VK_FORMAT_FEATURE_TRANSFER_DST_BIT);
}

/* Of three bytes of depth nobody can say which of the four in the buffer they are: those formats are left out. */
static void clears_depth(void)
{
	static const VkFormat formats[] = { VK_FORMAT_D16_UNORM, VK_FORMAT_D32_SFLOAT, VK_FORMAT_S8_UINT, VK_FORMAT_D32_SFLOAT_S8_UINT };
	int cleared = 0;

	for (unsigned i = 0; i < sizeof formats / sizeof *formats; i++)
		for (VkImageAspectFlags a = VK_IMAGE_ASPECT_DEPTH_BIT; a <= (VK_IMAGE_ASPECT_DEPTH_BIT | VK_IMAGE_ASPECT_STENCIL_BIT); a += VK_IMAGE_ASPECT_DEPTH_BIT)
			if (can_be_moved(formats[i]) && (a & aspects_of(formats[i])) == a) {
				clear_depth(formats[i], a);
				cleared++;
			}
	say("depth and stencil cleared %d\n", cleared);
}

static void each_format(void)
{
	int formats = 0;

	for (VkFormat format = 1; format <= VK_FORMAT_ASTC_12x12_SRGB_BLOCK; format++) {
		VkImageAspectFlags aspects = aspects_of(format);

		if (!can_be_moved(format))
			continue;
		formats++;
		for (VkImageAspectFlags one = VK_IMAGE_ASPECT_COLOR_BIT; one <= VK_IMAGE_ASPECT_STENCIL_BIT; one <<= 1)
			if (aspects & one)
				copies(format, one);
	}
	if (can_be_moved(VK_FORMAT_A4R4G4B4_UNORM_PACK16))
		copies(VK_FORMAT_A4R4G4B4_UNORM_PACK16, VK_IMAGE_ASPECT_COLOR_BIT);
	say("formats %d\n", formats);
}

int main(int argc, char **argv)
{
	static const VkPhysicalDeviceVulkan13Features features = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES };
	int version = argc > 1 ? atoi(argv[1]) : 12;

	newer = version >= 13;
	c.version = VK_MAKE_API_VERSION(0, version / 10, version % 10, 0);
	client_instance(&c, NULL, 0);
	client_device(&c, newer ? &features : NULL);
	client_data(&c, AREA);
	client_layout(&c);
	b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	if (argc > 2) {
		unknown = 1;
		copies((VkFormat)atoi(argv[2]), VK_IMAGE_ASPECT_COLOR_BIT);
	} else {
		each_format();
		clear();
		clears_depth();
		blits();
		resolves();
		slices();
	}
	client_end(&c);
	return 0;
}
