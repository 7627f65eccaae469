/*
 * vk_image.c - how many bytes a command on images moves: the size of its regions, in texels, times the size of one.
 *
 * A command that reads and writes different amounts (blit, resolve) is taken by what it writes. Formats that are not in
 * the table (those of several planes, those of vendors) and images that nobody told us of (of a swapchain) make the
 * bytes unknown, and they are told as such.
 */
#include "vk.h"

/* Formats of one size have numbers that follow each other: each row holds from its own up to the next one's. */
static const struct texel { u32 first; u8 bytes, width, height; } texels[] = {
	{ VK_FORMAT_UNDEFINED, 0, 1, 1 },
	{ VK_FORMAT_R4G4_UNORM_PACK8, 1, 1, 1 },
	{ VK_FORMAT_R4G4B4A4_UNORM_PACK16, 2, 1, 1 },
	{ VK_FORMAT_R8_UNORM, 1, 1, 1 },
	{ VK_FORMAT_R8G8_UNORM, 2, 1, 1 },
	{ VK_FORMAT_R8G8B8_UNORM, 3, 1, 1 },
	{ VK_FORMAT_R8G8B8A8_UNORM, 4, 1, 1 },
	{ VK_FORMAT_R16_UNORM, 2, 1, 1 },
	{ VK_FORMAT_R16G16_UNORM, 4, 1, 1 },
	{ VK_FORMAT_R16G16B16_UNORM, 6, 1, 1 },
	{ VK_FORMAT_R16G16B16A16_UNORM, 8, 1, 1 },
	{ VK_FORMAT_R32_UINT, 4, 1, 1 },
	{ VK_FORMAT_R32G32_UINT, 8, 1, 1 },
	{ VK_FORMAT_R32G32B32_UINT, 12, 1, 1 },
	{ VK_FORMAT_R32G32B32A32_UINT, 16, 1, 1 },
	{ VK_FORMAT_R64_UINT, 8, 1, 1 },
	{ VK_FORMAT_R64G64_UINT, 16, 1, 1 },
	{ VK_FORMAT_R64G64B64_UINT, 24, 1, 1 },
	{ VK_FORMAT_R64G64B64A64_UINT, 32, 1, 1 },
	{ VK_FORMAT_B10G11R11_UFLOAT_PACK32, 4, 1, 1 },
	{ VK_FORMAT_D16_UNORM, 2, 1, 1 },
	{ VK_FORMAT_X8_D24_UNORM_PACK32, 4, 1, 1 },
	{ VK_FORMAT_S8_UINT, 1, 1, 1 },
	{ VK_FORMAT_D16_UNORM_S8_UINT, 3, 1, 1 },
	{ VK_FORMAT_D24_UNORM_S8_UINT, 4, 1, 1 },
	{ VK_FORMAT_D32_SFLOAT_S8_UINT, 5, 1, 1 },
	{ VK_FORMAT_BC1_RGB_UNORM_BLOCK, 8, 4, 4 },
	{ VK_FORMAT_BC2_UNORM_BLOCK, 16, 4, 4 },
	{ VK_FORMAT_BC4_UNORM_BLOCK, 8, 4, 4 },
	{ VK_FORMAT_BC5_UNORM_BLOCK, 16, 4, 4 },
	{ VK_FORMAT_ETC2_R8G8B8_UNORM_BLOCK, 8, 4, 4 },
	{ VK_FORMAT_ETC2_R8G8B8A8_UNORM_BLOCK, 16, 4, 4 },
	{ VK_FORMAT_EAC_R11_UNORM_BLOCK, 8, 4, 4 },
	{ VK_FORMAT_EAC_R11G11_UNORM_BLOCK, 16, 4, 4 },
	{ VK_FORMAT_ASTC_4x4_UNORM_BLOCK, 16, 4, 4 },
	{ VK_FORMAT_ASTC_5x4_UNORM_BLOCK, 16, 5, 4 },
	{ VK_FORMAT_ASTC_5x5_UNORM_BLOCK, 16, 5, 5 },
	{ VK_FORMAT_ASTC_6x5_UNORM_BLOCK, 16, 6, 5 },
	{ VK_FORMAT_ASTC_6x6_UNORM_BLOCK, 16, 6, 6 },
	{ VK_FORMAT_ASTC_8x5_UNORM_BLOCK, 16, 8, 5 },
	{ VK_FORMAT_ASTC_8x6_UNORM_BLOCK, 16, 8, 6 },
	{ VK_FORMAT_ASTC_8x8_UNORM_BLOCK, 16, 8, 8 },
	{ VK_FORMAT_ASTC_10x5_UNORM_BLOCK, 16, 10, 5 },
	{ VK_FORMAT_ASTC_10x6_UNORM_BLOCK, 16, 10, 6 },
	{ VK_FORMAT_ASTC_10x8_UNORM_BLOCK, 16, 10, 8 },
	{ VK_FORMAT_ASTC_10x10_UNORM_BLOCK, 16, 10, 10 },
	{ VK_FORMAT_ASTC_12x10_UNORM_BLOCK, 16, 12, 10 },
	{ VK_FORMAT_ASTC_12x12_UNORM_BLOCK, 16, 12, 12 },
	{ VK_FORMAT_ASTC_12x12_SRGB_BLOCK + 1, 0, 1, 1 },
	{ VK_FORMAT_A4R4G4B4_UNORM_PACK16, 2, 1, 1 },
	{ VK_FORMAT_A4B4G4R4_UNORM_PACK16 + 1, 0, 1, 1 },
};

static struct texel texel_of(u32 format)
{
	u32 i = sizeof texels / sizeof *texels - 1;

	while (texels[i].first > format)
		i--;
	return texels[i];
}

/* Depth and stencil of one image may be moved apart. In a buffer, three bytes of depth are padded to four. */
static u64 bytes_of_texel(const struct texel *t, u32 format, VkImageAspectFlags aspects, bool in_buffer)
{
	bool both = format >= VK_FORMAT_D16_UNORM_S8_UINT && format <= VK_FORMAT_D32_SFLOAT_S8_UINT;

	if (!both || aspects == (VK_IMAGE_ASPECT_DEPTH_BIT | VK_IMAGE_ASPECT_STENCIL_BIT))
		return t->bytes;
	if (aspects == VK_IMAGE_ASPECT_STENCIL_BIT)
		return 1;
	return t->bytes - 1u + (in_buffer && format == VK_FORMAT_D24_UNORM_S8_UINT);
}

/* Of one layer; 0: unknown. */
static u64 bytes_of_layer(const struct vk_image *i, VkImageAspectFlags aspects, bool in_buffer, u64 width, u64 height)
{
	struct texel t = texel_of(i->format);

	return (width + t.width - 1) / t.width * ((height + t.height - 1) / t.height) * bytes_of_texel(&t, i->format, aspects, in_buffer) * i->samples;
}

static u64 layers_of(const struct vk_image *i, u32 base, u32 count)
{
	return count != VK_REMAINING_ARRAY_LAYERS ? count : i->layers > base ? i->layers - base : 0;
}

static u64 known(u64 bytes) { return bytes ? bytes : WORK_BYTES_UNKNOWN; }

static u32 between(i32 a, i32 b) { return a < b ? (u32)b - (u32)a : (u32)a - (u32)b; }

/* A blit's region has two corners instead, in any order. */
static VkExtent3D extent_of(const struct vk_regions *r, const void *at)
{
	const VkOffset3D *corner = at;

	if (!r->corners)
		return *(const VkExtent3D *)at;
	return (VkExtent3D){ between(corner[0].x, corner[1].x), between(corner[0].y, corner[1].y), between(corner[0].z, corner[1].z) };
}

/* What is one layer of three dimensions here may be many of two there: either is counted. */
u64 vk_bytes_of_regions(struct vk_device *d, VkImage image, struct vk_regions r)
{
	const struct vk_image *i = vk_image_of(d, image);
	u64 sum = 0;

	for (u32 n = 0; i && n < r.count; n++) {
		const char *at = (const char *)r.first + n * r.stride;
		const VkImageSubresourceLayers *s = (const void *)(at + r.layers);
		VkExtent3D extent = extent_of(&r, at + r.extent);
		u64 layers = layers_of(i, s->baseArrayLayer, s->layerCount);

		sum += bytes_of_layer(i, s->aspectMask, r.in_buffer, extent.width, extent.height) * (layers > extent.depth ? layers : extent.depth);
	}
	return known(sum);
}

static u64 at_level(u32 size, u32 level) { return level < 32 && size >> level ? size >> level : 1; }

static u64 bytes_of_levels(const struct vk_image *i, const VkImageSubresourceRange *r)
{
	u32 levels = r->levelCount != VK_REMAINING_MIP_LEVELS ? r->levelCount : i->levels > r->baseMipLevel ? i->levels - r->baseMipLevel : 0;
	u64 sum = 0;

	for (u32 level = r->baseMipLevel; levels; level++, levels--)
		sum += bytes_of_layer(i, r->aspectMask, false, at_level(i->width, level), at_level(i->height, level)) * at_level(i->depth, level);
	return sum * layers_of(i, r->baseArrayLayer, r->layerCount);
}

u64 vk_bytes_of_ranges(struct vk_device *d, VkImage image, u32 count, const VkImageSubresourceRange *ranges)
{
	const struct vk_image *i = vk_image_of(d, image);
	u64 sum = 0;

	for (u32 n = 0; i && n < count; n++)
		sum += bytes_of_levels(i, &ranges[n]);
	return known(sum);
}
