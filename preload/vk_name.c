/*
 * vk_name.c - names and labels that the program gives: VK_EXT_debug_utils and VK_EXT_debug_marker.
 */
#include "vk.h"
#include <string.h>

/* ---- texts that stay -------------------------------------------------------------------------------- */

enum { TEXT_BYTES = 1 << 20, TEXT_LONGEST = 240 };

static struct handles texts;            /* hash -> text */
static char *next_text;
static u32 text_room, text_lock;

static u64 hash_of(const char *text, size_t n)
{
	u64 h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (u8)text[i]) * 0x100000001b3ull;
	return h ^ h >> 31;
}

/* Ops point to their labels for as long as someone may submit them: so texts are kept, each once. */
const char *vk_text(const char *text)
{
	size_t n = text_length(text);
	char *kept;
	u64 hash;

	n = n < TEXT_LONGEST ? n : TEXT_LONGEST;
	hash = hash_of(text, n);
	kept = handles_find(&texts, hash);
	if (kept)
		return kept;
	spin_lock(&text_lock);
	if (text_room <= n) {
		next_text = sys_memory(TEXT_BYTES);
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

/* ---- labels of queues --------------------------------------------------------------------------------- */

void w_vkQueueBeginDebugUtilsLabelEXT(VkQueue queue, const VkDebugUtilsLabelEXT *label)
{
	struct vk_queue *q = vk_queue_of(queue);

	if (q && vk_ours(q->device) && q->labels++ < VK_LABELS)
		q->label[q->labels - 1] = label->pLabelName ? vk_text(label->pLabelName) : NULL;
	VK_CALL(DEVICE(q), vkQueueBeginDebugUtilsLabelEXT)(queue, label);
}

void w_vkQueueEndDebugUtilsLabelEXT(VkQueue queue)
{
	struct vk_queue *q = vk_queue_of(queue);

	if (q && q->labels)
		q->labels--;
	VK_CALL(DEVICE(q), vkQueueEndDebugUtilsLabelEXT)(queue);
}
