/*
 * vk_wait.c - waits and polls: when they come back, something may be done. And what ends a wait.
 */
#include "vk.h"

/* A poll is no wait: it is not told, as programs do millions of them. */
static void waited(struct vk_device *d, u64 begin, u64 name, VkResult r, bool poll, struct caller at)
{
	u64 now = ticks();

	if (!poll)
		vk_call_note(begin, CALL_WAIT, name, r, NULL, at);
	if (vk_ours(d) && vk_wanted())
		vk_drain(d, now);
	api_leave();
}

VkResult w_vkQueueWaitIdle(VkQueue queue)
{
	struct vk_queue *q = vk_queue_of(queue);
	struct vk_device *d = q ? q->device : NULL;
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkQueueWaitIdle)(queue);

	if (vk_ours(d) && r == VK_SUCCESS)
		vk_seen_idle(q, ticks());
	waited(d, begin, NAMED("vkQueueWaitIdle"), r, false, CALLER());
	return r;
}

VkResult w_vkDeviceWaitIdle(VkDevice device)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkDeviceWaitIdle)(device);

	for (struct vk_queue *q = vk_ours(d) && r == VK_SUCCESS ? __atomic_load_n(&d->queues, __ATOMIC_ACQUIRE) : NULL; q; q = q->next)
		vk_seen_idle(q, ticks());
	waited(d, begin, NAMED("vkDeviceWaitIdle"), r, false, CALLER());
	return r;
}

VkResult w_vkWaitForFences(VkDevice device, uint32_t count, const VkFence *fences, VkBool32 all, uint64_t timeout)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkWaitForFences)(device, count, fences, all, timeout);
	u64 now = ticks();

	for (u32 i = 0; vk_ours(d) && r == VK_SUCCESS && (all || count == 1) && i < count; i++)
		vk_seen_fence(d, fences[i], now);
	waited(d, begin, NAMED("vkWaitForFences"), r, !timeout, CALLER());
	return r;
}

VkResult w_vkGetFenceStatus(VkDevice device, VkFence fence)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkGetFenceStatus)(device, fence);

	if (vk_ours(d) && r == VK_SUCCESS)
		vk_seen_fence(d, fence, ticks());
	waited(d, begin, NAMED("vkGetFenceStatus"), r, true, CALLER());
	return r;
}

VkResult w_vkWaitSemaphores(VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkWaitSemaphores)(device, info, timeout);

	waited(d, begin, NAMED("vkWaitSemaphores"), r, !timeout, CALLER());
	return r;
}

VkResult w_vkGetSemaphoreCounterValue(VkDevice device, VkSemaphore semaphore, uint64_t *value)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkGetSemaphoreCounterValue)(device, semaphore, value);

	waited(d, begin, NAMED("vkGetSemaphoreCounterValue"), r, true, CALLER());
	return r;
}

/* No wait, but the end of one: on the device, or in another thread. */
VkResult w_vkSignalSemaphore(VkDevice device, const VkSemaphoreSignalInfo *info)
{
	u64 begin = api_enter();
	VkResult r = VK_CALL(vk_device_of(device), vkSignalSemaphore)(device, info);
	struct args a = { 0 };

	if (begin)
		args_number(&a, "value", info->value);
	vk_call_note(begin, CALL_OTHER, NAMED("vkSignalSemaphore"), r, &a, CALLER());
	api_leave();
	return r;
}

VkResult w_vkAcquireNextImageKHR(VkDevice device, VkSwapchainKHR chain, uint64_t timeout, VkSemaphore semaphore, VkFence fence, uint32_t *image)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkAcquireNextImageKHR)(device, chain, timeout, semaphore, fence, image);

	waited(d, begin, NAMED("vkAcquireNextImageKHR"), r, !timeout, CALLER());
	return r;
}

VkResult w_vkAcquireNextImage2KHR(VkDevice device, const VkAcquireNextImageInfoKHR *info, uint32_t *image)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkAcquireNextImage2KHR)(device, info, image);

	waited(d, begin, NAMED("vkAcquireNextImage2KHR"), r, !info->timeout, CALLER());
	return r;
}

VkResult w_vkWaitForPresentKHR(VkDevice device, VkSwapchainKHR chain, uint64_t present, uint64_t timeout)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkWaitForPresentKHR)(device, chain, present, timeout);

	waited(d, begin, NAMED("vkWaitForPresentKHR"), r, !timeout, CALLER());
	return r;
}

/* Drivers may wait here unasked; where the program asks for it, they must. */
VkResult w_vkGetQueryPoolResults(VkDevice device, VkQueryPool pool, uint32_t first, uint32_t count, size_t size, void *data, VkDeviceSize stride,
				 VkQueryResultFlags flags)
{
	struct vk_device *d = vk_device_of(device);
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkGetQueryPoolResults)(device, pool, first, count, size, data, stride, flags);

	waited(d, begin, NAMED("vkGetQueryPoolResults"), r, !(flags & VK_QUERY_RESULT_WAIT_BIT), CALLER());
	return r;
}

VkResult w_vkQueuePresentKHR(VkQueue queue, const VkPresentInfoKHR *info)
{
	struct vk_queue *q = vk_queue_of(queue);
	struct vk_device *d = q ? q->device : NULL;
	u64 begin = api_enter();
	VkResult r = VK_CALL(d, vkQueuePresentKHR)(queue, info);

	vk_call_note(begin, CALL_OTHER, NAMED("vkQueuePresentKHR"), r, NULL, CALLER());
	waited(d, begin, 0, r, true, CALLER());
	return r;
}

/* Nothing to time: shown as work that was handed over and is not heard of again. */
VkResult w_vkQueueBindSparse(VkQueue queue, uint32_t count, const VkBindSparseInfo *infos, VkFence fence)
{
	struct vk_queue *q = vk_queue_of(queue);
	struct vk_device *d = q ? q->device : NULL;
	u64 begin = api_enter(), work = 0;
	VkResult r;

	if (vk_ours(d) && begin) {
		work = work_numbers(1);
		work_note(&(struct rec_work){ .id = work, .queue = q->number, .kind = WORK_OTHER, .name = NAMED("vkQueueBindSparse") }, NULL);
	}
	r = VK_CALL(d, vkQueueBindSparse)(queue, count, infos, fence);
	if (work) {
		work_done_note(&(struct rec_work_done){ work, r < 0 ? DONE_FAILED : DONE_UNTIMED });
		call_note(begin, &(struct call){ CALL_SUBMIT, NAMED("vkQueueBindSparse"), work, 1, r < 0 ? r : 0 }, NULL, CALLER());
	}
	waited(d, begin, 0, r, true, CALLER());
	return r;
}
