/*
 * vk_hand.c - a submit goes to the driver.
 *
 *   the program's batch    [pre] its command buffers [post]      pre, post: ours (vk_ring.c)
 *   its last one           signals our semaphore, too
 *
 * `post` copies the stamps of the batch to memory that the host can read. It belongs to the program's own batch: when the
 * program learns that the batch is over, by fence or semaphore, our copy is over too, and the program may reset or free
 * its command buffers. The program's structures are copied, not changed.
 */
#include "vk_plan.h"

enum { STACK_BYTES = 6144 };

/* Room for copies of the program's structures, with ours between its own. */
struct room { char *next; };

#define TAKE(room, type, count) ((type *)take(room, (count) * sizeof(type)))

static void *take(struct room *r, size_t bytes)
{
	void *at = r->next;

	r->next += (bytes + 7) & ~7ul;
	return at;
}

/* A batch's command buffers, as they go to the driver. */
static u32 fill(const struct batch *b, VkCommandBuffer *to)
{
	const VkCommandBuffer *start = to;
	const struct vk_part *part = b->early ? b->first : NULL;

	if (b->whole)
		*to++ = b->slot->pre;
	for (u32 i = 0; i < b->count; i++) {
		*to++ = handle_in(b, i);
		for (; part && part->recording && part->index <= i; part = part != b->last ? part->next : NULL)
			if (part->slot)
				*to++ = part->slot->post;
	}
	*to++ = b->slot->post;
	return (u32)(to - start);
}

static u32 list_length(const struct batch *b) { return b->count + b->early + 2; }

/* Our semaphore is signalled by the last batch, or by one more behind it, where that must stay as it is. */
static bool can_join(const struct batch *b, const void *chain)
{
	const VkBaseInStructure *timeline = vk_in_chain(chain, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);

	return !b->refused && (!timeline || timeline == chain);
}

/* The values of semaphores that have none do not matter. */
static void signal_one(struct vk_queue *q, VkSubmitInfo *info, struct room *room)
{
	const VkTimelineSemaphoreSubmitInfo *theirs = info->pNext;
	u32 n = info->signalSemaphoreCount;
	VkTimelineSemaphoreSubmitInfo *values = TAKE(room, VkTimelineSemaphoreSubmitInfo, 1);
	VkSemaphore *list = TAKE(room, VkSemaphore, n + 1);
	u64 *value = TAKE(room, u64, n + 1);

	*values = (VkTimelineSemaphoreSubmitInfo){ .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, .pNext = info->pNext };
	if (theirs && theirs->sType == VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO)
		*values = *theirs;
	for (u32 i = 0; i < n; i++) {
		list[i] = info->pSignalSemaphores[i];
		value[i] = i < values->signalSemaphoreValueCount ? values->pSignalSemaphoreValues[i] : 0;
	}
	list[n] = q->semaphore;
	value[n] = q->mark + 1;
	values->signalSemaphoreValueCount = info->signalSemaphoreCount = n + 1;
	values->pSignalSemaphoreValues = value;
	info->pSignalSemaphores = list;
	info->pNext = values;
}

static void signal_two(struct vk_queue *q, VkSubmitInfo2 *info, struct room *room)
{
	u32 n = info->signalSemaphoreInfoCount;
	VkSemaphoreSubmitInfo *list = TAKE(room, VkSemaphoreSubmitInfo, n + 1);

	for (u32 i = 0; i < n; i++)
		list[i] = info->pSignalSemaphoreInfos[i];
	list[n] = (VkSemaphoreSubmitInfo){
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO, .semaphore = q->semaphore, .value = q->mark + 1,
		.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
	};
	info->signalSemaphoreInfoCount = n + 1;
	info->pSignalSemaphoreInfos = list;
}

static VkResult submit_one(struct plan *p, VkFence fence, struct room *room)
{
	u32 last = p->batches - 1, count = p->batches;
	VkSubmitInfo *copy = TAKE(room, VkSubmitInfo, count + 1);

	for (u32 i = 0; i < count; i++) {
		copy[i] = p->one[i];
		if (!p->batch[i].slot)
			continue;
		copy[i].pCommandBuffers = TAKE(room, VkCommandBuffer, list_length(&p->batch[i]));
		copy[i].commandBufferCount = fill(&p->batch[i], (VkCommandBuffer *)copy[i].pCommandBuffers);
	}
	if (p->queue->semaphore && !can_join(&p->batch[last], p->one[last].pNext)) {
		copy[count] = (VkSubmitInfo){ .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO };
		last = count++;
	}
	if (p->queue->semaphore)
		signal_one(p->queue, &copy[last], room);
	return p->queue->device->fn.vkQueueSubmit(p->queue->handle, count, copy, fence);
}

/* Our own command buffers are never the program's: so its infos fit where the handles are the same. */
static u32 fill_two(const struct batch *b, VkCommandBufferSubmitInfo *to, struct room *room)
{
	VkCommandBuffer *list = TAKE(room, VkCommandBuffer, list_length(b));
	u32 n = fill(b, list), own = 0;

	for (u32 i = 0; i < n; i++)
		if (own < b->count && list[i] == b->two[own].commandBuffer)
			to[i] = b->two[own++];
		else
			to[i] = (VkCommandBufferSubmitInfo){ .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = list[i] };
	return n;
}

static VkResult submit_two(struct plan *p, VkFence fence, struct room *room)
{
	u32 last = p->batches - 1, count = p->batches;
	VkSubmitInfo2 *copy = TAKE(room, VkSubmitInfo2, count + 1);

	for (u32 i = 0; i < count; i++) {
		copy[i] = p->two[i];
		if (!p->batch[i].slot)
			continue;
		copy[i].pCommandBufferInfos = TAKE(room, VkCommandBufferSubmitInfo, list_length(&p->batch[i]));
		copy[i].commandBufferInfoCount = fill_two(&p->batch[i], (VkCommandBufferSubmitInfo *)copy[i].pCommandBufferInfos, room);
	}
	if (p->queue->semaphore && p->batch[last].refused) {
		copy[count] = (VkSubmitInfo2){ .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2 };
		last = count++;
	}
	if (p->queue->semaphore)
		signal_two(p->queue, &copy[last], room);
	return p->queue->device->fn.vkQueueSubmit2(p->queue->handle, count, copy, fence);
}

/* Enough for all that is taken above. */
static size_t room_for(const struct plan *p)
{
	u32 last = p->batches - 1, signals = p->second ? p->two[last].signalSemaphoreInfoCount : p->one[last].signalSemaphoreCount;
	size_t info = sizeof(VkSubmitInfo) > sizeof(VkSubmitInfo2) ? sizeof(VkSubmitInfo) : sizeof(VkSubmitInfo2);
	size_t bytes = (p->batches + 1) * info + (signals + 2) * sizeof(VkSemaphoreSubmitInfo);

	for (u32 i = 0; i < p->batches; i++)
		bytes += list_length(&p->batch[i]) * (sizeof(VkCommandBufferSubmitInfo) + sizeof(VkCommandBuffer));
	return bytes;
}

VkResult vk_plan_plain(const struct plan *p, VkQueue queue, u32 count, VkFence fence)
{
	const struct vk_device *d = DEVICE(p->queue);

	return p->second ? VK_CALL(d, vkQueueSubmit2)(queue, count, p->two, fence) : VK_CALL(d, vkQueueSubmit)(queue, count, p->one, fence);
}

/* The copies lie on the stack, if they are not too many: that of the calling thread, which may be small, so no more of it is taken. */
VkResult vk_plan_submit(struct plan *p, VkFence fence)
{
	size_t bytes = room_for(p);
	char *stack = bytes <= STACK_BYTES ? __builtin_alloca(bytes) : NULL;
	char *memory = !p->marked ? NULL : stack ? stack : sys_memory(bytes);
	struct room room = { memory };
	VkResult r;

	if (!memory) {
		vk_plan_untime(p);
		p->marked = false;
		return vk_plan_plain(p, p->queue->handle, p->batches, fence);
	}
	r = p->second ? submit_two(p, fence, &room) : submit_one(p, fence, &room);
	if (!stack)
		sys_munmap(memory, bytes);
	return r;
}
