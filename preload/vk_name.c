/*
 * vk_name.c - names that the program gives its objects: VK_EXT_debug_utils and VK_EXT_debug_marker.
 */
#include "vk.h"
#include <string.h>

/* ---- texts that stay -------------------------------------------------------------------------------- */

enum { TEXT_BYTES = 1 << 20, TEXT_BLOCKS = 16, TEXT_LONGEST = 240 };

static struct handles texts;            /* hash -> text */
static char *next_text;
static u32 text_room, text_blocks, text_lock;

static void say_full(void)
{
	static u32 told;

	if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		notice_note("Vulkan: the program gave more than 16 MiB of different names and labels; later ones are not shown");
}

/* Ops point to their labels for as long as someone may submit them: so texts are kept, each once. */
const char *vk_text(const char *text)
{
	size_t n = text_length(text);
	char *kept;
	u64 hash;

	n = n < TEXT_LONGEST ? n : TEXT_LONGEST;
	hash = text_hash(text, n);
	kept = handles_find(&texts, hash);
	if (kept)
		return kept;
	spin_lock(&text_lock);
	if (text_room <= n && text_blocks < TEXT_BLOCKS) {
		next_text = sys_memory(TEXT_BYTES);
		text_blocks++;
		__atomic_store_n(&text_room, next_text ? TEXT_BYTES : 0, __ATOMIC_RELEASE);
	}
	kept = text_room > n ? next_text : NULL;
	if (kept) {
		memcpy(kept, text, n);
		__atomic_store_n(&text_room, text_room - (u32)n - 1, __ATOMIC_RELEASE);
		next_text += n + 1;
	}
	spin_unlock(&text_lock);
	if (kept)
		handles_put(&texts, hash, kept);
	else
		say_full();
	return kept;
}

/* ---- objects ---------------------------------------------------------------------------------------- */

void vk_object_named(struct vk_device *d, VkObjectType type, u64 handle, const char *name)
{
	const struct vk_queue *q;
	u64 id;

	if (type == VK_OBJECT_TYPE_PIPELINE)
		vk_pipeline_named(d, (VkPipeline)handle, name);
	else if (type == VK_OBJECT_TYPE_SHADER_MODULE)
		vk_module_named(d, (VkShaderModule)handle, name);
	else if (type == VK_OBJECT_TYPE_QUEUE && (q = vk_queue_of((VkQueue)handle)))
		label_note(LABEL_QUEUE, q->number, name);
	else if (type == VK_OBJECT_TYPE_DEVICE)
		label_note(LABEL_DEVICE, d->number, name);
	else if ((id = vk_memory_id(d, type, handle, name)))
		label_note(LABEL_MEMORY, id, name);
}

VkResult w_vkSetDebugUtilsObjectNameEXT(VkDevice device, const VkDebugUtilsObjectNameInfoEXT *info)
{
	struct vk_device *d = vk_device_of(device);

	if (vk_ours(d) && vk_wanted())
		vk_object_named(d, info->objectType, info->objectHandle, info->pObjectName ? info->pObjectName : "");
	return VK_CALL(d, vkSetDebugUtilsObjectNameEXT)(device, info);
}

/* The older extension numbers the types in its own way. */
static VkObjectType type_of_marker(VkDebugReportObjectTypeEXT type)
{
	static const struct { VkDebugReportObjectTypeEXT from; VkObjectType to; } rows[] = {
		{ VK_DEBUG_REPORT_OBJECT_TYPE_PIPELINE_EXT, VK_OBJECT_TYPE_PIPELINE },
		{ VK_DEBUG_REPORT_OBJECT_TYPE_SHADER_MODULE_EXT, VK_OBJECT_TYPE_SHADER_MODULE },
		{ VK_DEBUG_REPORT_OBJECT_TYPE_QUEUE_EXT, VK_OBJECT_TYPE_QUEUE },
		{ VK_DEBUG_REPORT_OBJECT_TYPE_DEVICE_EXT, VK_OBJECT_TYPE_DEVICE },
		{ VK_DEBUG_REPORT_OBJECT_TYPE_DEVICE_MEMORY_EXT, VK_OBJECT_TYPE_DEVICE_MEMORY },
		{ VK_DEBUG_REPORT_OBJECT_TYPE_BUFFER_EXT, VK_OBJECT_TYPE_BUFFER },
		{ VK_DEBUG_REPORT_OBJECT_TYPE_IMAGE_EXT, VK_OBJECT_TYPE_IMAGE },
	};

	for (u32 i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].from == type)
			return rows[i].to;
	return VK_OBJECT_TYPE_UNKNOWN;
}

VkResult w_vkDebugMarkerSetObjectNameEXT(VkDevice device, const VkDebugMarkerObjectNameInfoEXT *info)
{
	struct vk_device *d = vk_device_of(device);

	if (vk_ours(d) && vk_wanted())
		vk_object_named(d, type_of_marker(info->objectType), info->object, info->pObjectName ? info->pObjectName : "");
	return VK_CALL(d, vkDebugMarkerSetObjectNameEXT)(device, info);
}
