/*
 * vk_memory.c - device memory, and the buffers and images that lie in it.
 *
 *   VkDeviceMemory        counts: its bytes are the device's
 *   buffer, image bound   lies in it: 0 bytes of its own, an offset and a length
 *
 * So the blocks of sub-allocators are opened up by what is bound where. Imported memory counts 0: someone else made it.
 */
#include "vk.h"

enum { BUFFER, IMAGE };
enum { SLAB_LEAST = 1 << 20 };         /* bytes; what is smaller is no sub-allocator's block */

struct memory {
	u64 id;
	u32 heap;
	struct resource *bound;
};

struct resource {
	u64 id;                         /* once it is bound; 0: not, or its memory is gone */
	u64 bytes;                      /* buffers: as asked for */
	u32 kind, usage;
	struct vk_image image;
	const char *name;
	struct vk_slab slab;
	struct memory *memory;
	struct resource *next, *before;
};

static struct handles memories, buffers, images;
static struct pool memory_pool = POOL(struct memory), resource_pool = POOL(struct resource);
static u32 lock;                        /* of what is bound where: a program may free memory on one thread and destroy what lies in it on another */

/* ---- memory --------------------------------------------------------------------------------------------- */

static bool is_imported(const void *chain)
{
	static const VkStructureType types[] = {
		VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT, VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
	};

	for (u32 i = 0; i < sizeof types / sizeof *types; i++)
		if (vk_in_chain(chain, types[i]))
			return true;
	return false;
}

static u32 flags_of(const struct vk_device *d, const VkMemoryAllocateInfo *info)
{
	VkMemoryPropertyFlags f = d->memory.memoryTypes[info->memoryTypeIndex].propertyFlags;

	return (f & VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT ? MEMORY_HOST_VISIBLE : 0) |
	       (f & VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT ? MEMORY_DEVICE_LOCAL : 0) |
	       (is_imported(info->pNext) ? MEMORY_IMPORTED : 0) |
	       (vk_in_chain(info->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT) ? MEMORY_HOST_POINTER : 0) |
	       (vk_in_chain(info->pNext, VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO) ? MEMORY_SHARED : 0);
}

static void memory_known(struct vk_device *d, VkDeviceMemory handle, const VkMemoryAllocateInfo *info, struct caller at)
{
	struct memory *m = info->memoryTypeIndex < d->memory.memoryTypeCount ? pool_get(&memory_pool) : NULL;
	struct rec_device_alloc r = { .device = d->number, .length = info->allocationSize };
	struct args a;

	if (!m)
		return;
	r.id = m->id = memory_number();
	r.heap = m->heap = d->memory.memoryTypes[info->memoryTypeIndex].heapIndex;
	r.flags = flags_of(d, info);
	r.bytes = r.flags & MEMORY_IMPORTED ? 0 : info->allocationSize;
	handles_put(&memories, vk_key(d, (u64)handle), m);
	a.used = 0;
	args_word(&a, r.flags & MEMORY_HOST_POINTER ? "imported host memory" : r.flags & MEMORY_IMPORTED ? "imported memory" : "memory");
	args_number(&a, "type", info->memoryTypeIndex);
	if (vk_in_chain(info->pNext, VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO))
		args_text(&a, "dedicated", "yes");
	memory_note(&r, &a, at);
}

VkResult w_vkAllocateMemory(VkDevice device, const VkMemoryAllocateInfo *info, const VkAllocationCallbacks *allocator, VkDeviceMemory *memory)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkAllocateMemory)(device, info, allocator, memory);
	struct args a;

	a.used = 0;
	args_number(&a, "bytes", info->allocationSize);
	if (r == VK_SUCCESS && vk_ours(d) && vk_wanted())
		memory_known(d, *memory, info, CALLER());
	vk_call_note(begin, CALL_MEMORY, NAMED("vkAllocateMemory"), r, &a, CALLER());
	api_leave();
	return r;
}

/* ---- what is bound -------------------------------------------------------------------------------------- */

static void take_out(struct resource *b)
{
	if (b->before)
		b->before->next = b->next;
	else
		b->memory->bound = b->next;
	if (b->next)
		b->next->before = b->before;
	b->memory = NULL;
	b->next = b->before = NULL;
}

/* What this leads to, bound or not, lies nowhere any more. False: it did not before. */
static bool unbind(struct resource *const *at)
{
	struct vk_slab slab = { 0 };
	struct resource *b;
	u64 id;

	spin_lock(&lock);
	b = *at;
	id = b ? b->id : 0;
	if (b && b->memory)
		take_out(b);
	if (b) {
		b->id = 0;
		slab = b->slab;
		b->slab = (struct vk_slab){ 0 };
	}
	spin_unlock(&lock);
	if (id) {
		vk_slab_end(&slab);
		memory_gone_note(id);
	}
	return id;
}

/* What is still bound in it ends with it. */
void w_vkFreeMemory(VkDevice device, VkDeviceMemory memory, const VkAllocationCallbacks *allocator)
{
	struct vk_device *d = vk_device_of(device);
	struct memory *m = vk_ours(d) ? handles_remove(&memories, vk_key(d, (u64)memory)) : NULL;
	u64 begin = api_enter();

	if (m) {
		while (unbind(&m->bound))
			;
		memory_gone_note(m->id);
		pool_put(&memory_pool, m);
	}
	VK_CALL(d, vkFreeMemory)(device, memory, allocator);
	if (memory)
		vk_call_note(begin, CALL_MEMORY, NAMED("vkFreeMemory"), 0, NULL, CALLER());
	api_leave();
}

static void usage_words(char *text, size_t size, u32 kind, u32 usage)
{
	static const char *const words[][9] = {
		[BUFFER] = { "transfer_src", "transfer_dst", "uniform_texel", "storage_texel", "uniform", "storage", "index", "vertex", "indirect" },
		[IMAGE] = { "transfer_src", "transfer_dst", "sampled", "storage", "color", "depth_stencil", "transient", "input", "" },
	};

	*text = 0;
	for (u32 i = 0; i < 9; i++)
		if (usage & 1u << i) {
			text_append(text, size, *text ? " " : "");
			text_append(text, size, words[kind][i]);
		}
}

static void args_of(const struct resource *b, struct args *a)
{
	char text[160];

	a->used = 0;
	args_word(a, b->kind == BUFFER ? "buffer" : "image");
	if (b->kind == BUFFER)
		args_number(a, "size", b->bytes);
	usage_words(text, sizeof text, b->kind, b->usage);
	args_text(a, "usage", text);
	if (b->kind == BUFFER)
		return;
	args_number(a, "width", b->image.width);
	args_number(a, "height", b->image.height);
	if (b->image.depth > 1)
		args_number(a, "depth", b->image.depth);
	if (b->image.layers > 1)
		args_number(a, "layers", b->image.layers);
	args_number(a, "format", b->image.format);
}

static void bound(struct vk_device *d, struct resource *b, VkDeviceMemory memory, u64 offset, u64 length, struct caller at)
{
	struct memory *m = handles_find(&memories, vk_key(d, (u64)memory));
	struct rec_device_alloc r = { .device = d->number, .offset = offset, .length = length };
	struct args a;

	if (!m || !b)
		return;
	if (b->id)                              /* planes of one image are bound one by one */
		return;
	r.id = b->id = memory_number();
	r.parent = m->id;
	r.heap = m->heap;
	spin_lock(&lock);
	b->memory = m;
	b->before = NULL;
	b->next = m->bound;
	if (b->next)
		b->next->before = b;
	m->bound = b;
	spin_unlock(&lock);
	args_of(b, &a);
	memory_note(&r, &a, at);
	if (b->name)
		label_note(LABEL_MEMORY, b->id, b->name);
	if (b->kind == BUFFER && b->bytes >= SLAB_LEAST) {
		b->slab = (struct vk_slab){ .id = b->id, .bytes = b->bytes };
		memory_used_note(&(struct rec_memory_used){ .id = b->id });
	}
}

static struct resource *buffer_of(struct vk_device *d, VkBuffer buffer) { return d ? handles_find(&buffers, vk_key(d, (u64)buffer)) : NULL; }
static struct resource *resource_of(struct vk_device *d, VkImage image) { return d ? handles_find(&images, vk_key(d, (u64)image)) : NULL; }

static void buffer_bound(struct vk_device *d, VkBuffer buffer, VkDeviceMemory memory, u64 offset, struct caller at)
{
	struct resource *b = buffer_of(d, buffer);

	if (b && vk_ours(d) && vk_wanted())
		bound(d, b, memory, offset, b->bytes, at);
}

static void image_bound(struct vk_device *d, VkImage image, VkDeviceMemory memory, u64 offset, struct caller at)
{
	struct resource *b = resource_of(d, image);
	VkMemoryRequirements need;

	if (!b || !memory || !vk_ours(d) || !vk_wanted())
		return;
	d->fn.vkGetImageMemoryRequirements(d->handle, image, &need);
	bound(d, b, memory, offset, need.size, at);
}

VkResult w_vkBindBufferMemory(VkDevice device, VkBuffer buffer, VkDeviceMemory memory, VkDeviceSize offset)
{
	struct vk_device *d = vk_device_of(device);
	VkResult r = VK_CALL(d, vkBindBufferMemory)(device, buffer, memory, offset);

	if (r == VK_SUCCESS && d)
		buffer_bound(d, buffer, memory, offset, CALLER());
	return r;
}

VkResult w_vkBindImageMemory(VkDevice device, VkImage image, VkDeviceMemory memory, VkDeviceSize offset)
{
	struct vk_device *d = vk_device_of(device);
	VkResult r = VK_CALL(d, vkBindImageMemory)(device, image, memory, offset);

	if (r == VK_SUCCESS && d)
		image_bound(d, image, memory, offset, CALLER());
	return r;
}

VkResult w_vkBindBufferMemory2(VkDevice device, uint32_t count, const VkBindBufferMemoryInfo *infos)
{
	struct vk_device *d = vk_device_of(device);
	VkResult r = VK_CALL(d, vkBindBufferMemory2)(device, count, infos);

	for (u32 i = 0; r == VK_SUCCESS && d && i < count; i++)
		buffer_bound(d, infos[i].buffer, infos[i].memory, infos[i].memoryOffset, CALLER());
	return r;
}

/* An image with planes of its own memory has no requirements as a whole. */
VkResult w_vkBindImageMemory2(VkDevice device, uint32_t count, const VkBindImageMemoryInfo *infos)
{
	struct vk_device *d = vk_device_of(device);
	VkResult r = VK_CALL(d, vkBindImageMemory2)(device, count, infos);

	for (u32 i = 0; r == VK_SUCCESS && d && i < count; i++)
		if (!vk_in_chain(infos[i].pNext, VK_STRUCTURE_TYPE_BIND_IMAGE_PLANE_MEMORY_INFO))
			image_bound(d, infos[i].image, infos[i].memory, infos[i].memoryOffset, CALLER());
	return r;
}

/* ---- buffers and images ------------------------------------------------------------------------------------ */

VkResult w_vkCreateBuffer(VkDevice device, const VkBufferCreateInfo *info, const VkAllocationCallbacks *allocator, VkBuffer *buffer)
{
	struct vk_device *d = vk_device_of(device);
	VkResult r = VK_CALL(d, vkCreateBuffer)(device, info, allocator, buffer);
	struct resource *b = r == VK_SUCCESS && vk_ours(d) ? pool_get(&resource_pool) : NULL;

	if (b) {
		b->kind = BUFFER;
		b->bytes = info->size;
		b->usage = info->usage;
		handles_put(&buffers, vk_key(d, (u64)*buffer), b);
	}
	return r;
}

VkResult w_vkCreateImage(VkDevice device, const VkImageCreateInfo *info, const VkAllocationCallbacks *allocator, VkImage *image)
{
	struct vk_device *d = vk_device_of(device);
	VkResult r = VK_CALL(d, vkCreateImage)(device, info, allocator, image);
	struct resource *b = r == VK_SUCCESS && vk_ours(d) ? pool_get(&resource_pool) : NULL;

	if (b) {
		b->kind = IMAGE;
		b->usage = info->usage;
		b->image = (struct vk_image){ info->format, info->extent.width, info->extent.height, info->extent.depth, info->arrayLayers,
					      info->mipLevels, info->samples };
		handles_put(&images, vk_key(d, (u64)*image), b);
	}
	return r;
}

static void resource_gone(struct resource *b)
{
	if (!b)
		return;
	unbind(&b);
	pool_put(&resource_pool, b);
}

void w_vkDestroyBuffer(VkDevice device, VkBuffer buffer, const VkAllocationCallbacks *allocator)
{
	struct vk_device *d = vk_device_of(device);

	if (vk_ours(d))
		resource_gone(handles_remove(&buffers, vk_key(d, (u64)buffer)));
	VK_CALL(d, vkDestroyBuffer)(device, buffer, allocator);
}

void w_vkDestroyImage(VkDevice device, VkImage image, const VkAllocationCallbacks *allocator)
{
	struct vk_device *d = vk_device_of(device);

	if (vk_ours(d))
		resource_gone(handles_remove(&images, vk_key(d, (u64)image)));
	VK_CALL(d, vkDestroyImage)(device, image, allocator);
}

u64 vk_buffer_bytes(struct vk_device *d, VkBuffer buffer)
{
	const struct resource *b = buffer_of(d, buffer);

	return b ? b->bytes : 0;
}

struct vk_slab *vk_slab_of(struct vk_device *d, VkBuffer buffer)
{
	struct resource *b = buffer_of(d, buffer);

	return b && b->slab.id ? &b->slab : NULL;
}

const struct vk_image *vk_image_of(struct vk_device *d, VkImage image)
{
	const struct resource *b = resource_of(d, image);

	return b ? &b->image : NULL;
}

/* ---- names ---------------------------------------------------------------------------------------------------- */

u64 vk_memory_id(struct vk_device *d, VkObjectType type, u64 handle, const char *name)
{
	const struct memory *m = type == VK_OBJECT_TYPE_DEVICE_MEMORY ? handles_find(&memories, vk_key(d, handle)) : NULL;
	struct resource *b = type == VK_OBJECT_TYPE_BUFFER ? buffer_of(d, (VkBuffer)handle) :
			     type == VK_OBJECT_TYPE_IMAGE ? resource_of(d, (VkImage)handle) : NULL;

	if (b)
		b->name = vk_text(name);        /* for when it is bound */
	return m ? m->id : b ? b->id : 0;
}

/* ---- maps ------------------------------------------------------------------------------------------------------- */

VkResult w_vkMapMemory(VkDevice device, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size, VkMemoryMapFlags flags, void **data)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkMapMemory)(device, memory, offset, size, flags, data);
	struct args a;

	a.used = 0;
	args_number(&a, "offset", offset);
	if (size == VK_WHOLE_SIZE)
		args_text(&a, "bytes", "to the end");
	else
		args_number(&a, "bytes", size);
	vk_call_note(begin, CALL_MEMORY, NAMED("vkMapMemory"), r, &a, CALLER());
	api_leave();
	return r;
}

void w_vkUnmapMemory(VkDevice device, VkDeviceMemory memory)
{
	struct vk_device *d = vk_device_of(device);

	VK_CALL(d, vkUnmapMemory)(device, memory);
}
