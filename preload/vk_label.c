/*
 * vk_label.c - labels and marks that the program puts between its commands: VK_EXT_debug_utils and VK_EXT_debug_marker.
 *
 * The innermost label is told with each piece of work; a mark is shown on the queue's track.
 */
#include "vk.h"

/* ---- in command buffers ------------------------------------------------------------------------- */

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

/* A mark is where all that came before it is over. Inside of a render pass, or where nothing is timed, it has no place of its own. */
static struct vk_device *mark(VkCommandBuffer b, const char *name, struct caller at)
{
	struct vk_command_buffer *c = vk_command_buffer_of(b);
	struct vk_op op = { .kind = WORK_MARK, .name = name_number(name) };

	if (c && vk_ours(c->device) && c->recording && c->recording->stamped && !c->rendering && op.name)
		vk_op_end(c, vk_op_begin(c, &op, at));
	return DEVICE(c);
}

void w_vkCmdInsertDebugUtilsLabelEXT(VkCommandBuffer b, const VkDebugUtilsLabelEXT *label)
{
	struct vk_device *d = mark(b, label->pLabelName, CALLER());

	VK_CALL(d, vkCmdInsertDebugUtilsLabelEXT)(b, label);
}

void w_vkCmdDebugMarkerInsertEXT(VkCommandBuffer b, const VkDebugMarkerMarkerInfoEXT *marker)
{
	struct vk_device *d = mark(b, marker->pMarkerName, CALLER());

	VK_CALL(d, vkCmdDebugMarkerInsertEXT)(b, marker);
}

/* ---- of queues ----------------------------------------------------------------------------------- */

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

/* Nothing runs for it: it is where the host put it. */
void w_vkQueueInsertDebugUtilsLabelEXT(VkQueue queue, const VkDebugUtilsLabelEXT *label)
{
	struct vk_queue *q = vk_queue_of(queue);
	u64 begin = api_enter(), work = begin && q && vk_ours(q->device) ? work_numbers(1) : 0;

	VK_CALL(DEVICE(q), vkQueueInsertDebugUtilsLabelEXT)(queue, label);
	if (work) {
		work_note(&(struct rec_work){ .id = work, .queue = q->number, .kind = WORK_MARK, .name = name_number(label->pLabelName) }, NULL);
		work_done_note(&(struct rec_work_done){ work, DONE_OBSERVED, .start = begin, .end = begin });
		call_note(begin, &(struct call){ CALL_OTHER, NAMED("vkQueueInsertDebugUtilsLabelEXT"), work, 1 }, NULL, CALLER());
	}
	api_leave();
}
