/*
 * vk_ring.c - what a queue needs for our part of its submits: command buffers, memory for results, a semaphore or fences.
 *
 * Things are taken by whoever submits (the program sees to it that only one thread does) and given back by whoever finds
 * them done. A slot keeps its memory, and its command buffer as it was recorded: a batch like the one before needs
 * nothing to be recorded anew.
 */
#include "vk.h"

enum { WORDS_FIRST = 8192, WORDS_OF_SLOT = 64, LOOKED_AT = 8 };

static struct pool slot_pool = POOL(struct vk_slot), arena_pool = POOL(struct vk_arena);

/* ---- start and end ------------------------------------------------------------------------------ */

static bool make_semaphore(struct vk_queue *q)
{
	VkSemaphoreTypeCreateInfo type = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO, .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE };
	VkSemaphoreCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO, .pNext = &type };

	return q->device->fn.vkCreateSemaphore(q->device->handle, &info, NULL, &q->semaphore) == VK_SUCCESS;
}

static bool make_pool(struct vk_queue *q)
{
	VkCommandPoolCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = q->family,
		.flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
	};

	return q->device->fn.vkCreateCommandPool(q->device->handle, &info, NULL, &q->pool) == VK_SUCCESS;
}

/* It does so on a thread of its own, where nobody can tell what for. */
static void say_what_stamps_cost(const struct vk_queue *q)
{
	static u32 said;

	if (q->stamps && q->device->cpu && !q->device->bell && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
		notice_note("the Vulkan device is the CPU: its driver takes heap memory, about 1 KiB, for each stamp that is under way "
			    "(--device-time=submit takes fewer, off none)");
}

bool vk_ring_start(struct vk_queue *q)
{
	if (likely(q->ready))
		return true;
	if (q->broken)
		return false;
	q->broken = true;
	if (q->device->timeline && !make_semaphore(q))
		return false;
	if (q->stamps && !make_pool(q))
		q->stamps = false;
	q->broken = false;
	say_what_stamps_cost(q);
	return q->ready = true;
}

static void release_slots(struct vk_queue *q)
{
	struct vk_device *d = q->device;

	for (u32 i = 0; i < VK_SLOT_LISTS; i++)
		for (struct vk_slot *s; (s = q->slots[i]);) {
			q->slots[i] = s->next;
			if (vk_queries_key(&s->around))
				vk_queries_free(d, &s->around);
			pool_put(&slot_pool, s);
		}
}

/* The queue is idle and drained. What a lost device still holds is given up. */
void vk_ring_release(struct vk_queue *q)
{
	struct vk_device *d = q->device;

	if (!q->ready)
		return;
	if (q->pool)
		d->fn.vkDestroyCommandPool(d->handle, q->pool, NULL);
	release_slots(q);
	for (struct vk_arena *a = q->arenas, *next; a; a = next) {
		next = a->next;
		vk_buffer_free(d, a->buffer, a->memory);
		pool_put(&arena_pool, a);
	}
	if (q->semaphore)
		d->fn.vkDestroySemaphore(d->handle, q->semaphore, NULL);
	while (q->fences)
		d->fn.vkDestroyFence(d->handle, q->fence[--q->fences], NULL);
}

/* ---- command buffers ------------------------------------------------------------------------------ */

/* The one that runs first is always the same. */
static bool record_pre(const struct vk_device *d, const struct vk_slot *s)
{
	VkCommandBufferBeginInfo begin = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO };

	if (d->fn.vkBeginCommandBuffer(s->pre, &begin) != VK_SUCCESS)
		return false;
	if (!s->around.at)
		vk_queries_reset(d, s->pre, &s->around, 2);
	vk_queries_stamp(d, s->pre, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, &s->around, 0);
	return d->fn.vkEndCommandBuffer(s->pre) == VK_SUCCESS;
}

static bool prepare_whole(struct vk_device *d, struct vk_slot *s)
{
	if (vk_queries_key(&s->around))
		return true;
	if (!vk_queries_make(d, 2, &s->around))
		return false;
	if (record_pre(d, s))
		return true;
	vk_queries_free(d, &s->around);
	s->around = (struct vk_queries){ 0 };
	return false;
}

static struct vk_slot *make_slot(struct vk_queue *q)
{
	struct vk_device *d = q->device;
	VkCommandBufferAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = q->pool,
		.level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 2,
	};
	struct vk_slot *s = pool_get(&slot_pool);
	VkCommandBuffer both[2];

	if (!s)
		return NULL;
	if (d->fn.vkAllocateCommandBuffers(d->handle, &info, both) != VK_SUCCESS) {
		pool_put(&slot_pool, s);
		return NULL;
	}
	s->pre = both[0];
	s->post = both[1];
	s->content.odd = true;
	return s;
}

/* ---- memory for results ------------------------------------------------------------------------------ */

static bool more(struct vk_queue *q, u64 words)
{
	struct vk_arena *a = pool_get(&arena_pool);
	u64 size = q->arenas ? q->arenas->words * 2 : WORDS_FIRST;
	void *at = NULL;

	if (!a)
		return false;
	a->words = size > words ? size : words;
	if (!vk_buffer_make(q->device, a->words * 8, true, &a->buffer, &a->memory, &at)) {
		pool_put(&arena_pool, a);
		return false;
	}
	a->at = at;
	a->next = q->arenas;
	q->arenas = a;
	return true;
}

/* A slot's memory at least doubles when it does not suffice; what it had is not used again. */
static bool give_room(struct vk_queue *q, struct vk_slot *s, u64 words)
{
	u64 size = s->words ? s->words * 2 : WORDS_OF_SLOT;
	struct vk_arena *a;

	if (words <= s->words)
		return true;
	size = size > words ? size : words;
	if ((!q->arenas || q->arenas->words - q->arenas->used < size) && !more(q, size))
		return false;
	a = q->arenas;
	s->at = a->at + a->used;
	s->buffer = a->buffer;
	s->offset = a->used * 8;
	s->words = size;
	a->used += size;
	return true;
}

/* ---- slots ------------------------------------------------------------------------------------------- */

static bool is_same(const struct vk_content *a, const struct vk_content *b)
{
	if (a->odd || b->odd || a->words != b->words || a->pieces != b->pieces || a->whole != b->whole || a->late != b->late)
		return false;
	for (u32 i = 0; i < a->pieces; i++)
		if (a->piece[i].queries != b->piece[i].queries || a->piece[i].ops != b->piece[i].ops)
			return false;
	return true;
}

static u32 list_of(const struct vk_content *c)
{
	return c->pieces ? (u32)(c->piece[0].queries * 0x9e3779b97f4a7c15ull >> 60) : 0;
}

/* A free one that need not be recorded anew, if there is one among the latest of its list; else any. */
static struct vk_slot *take_slot(struct vk_queue *q, const struct vk_content *wanted)
{
	u32 list = list_of(wanted);
	struct vk_slot **at = &q->slots[list], *found;

	spin_lock(&q->lock);
	for (u32 i = 0; i < LOOKED_AT && *at && !is_same(&(*at)->content, wanted); i++)
		at = &(*at)->next;
	if (!*at || !is_same(&(*at)->content, wanted))
		for (u32 i = 0; i < VK_SLOT_LISTS && !*(at = &q->slots[(list + i) % VK_SLOT_LISTS]); i++)
			;
	found = *at;
	if (found) {
		*at = found->next;
		found->content.odd = !is_same(&found->content, wanted);
	}
	spin_unlock(&q->lock);
	return found;
}

struct vk_slot *vk_ring_slot(struct vk_queue *q, const struct vk_content *wanted)
{
	struct vk_slot *s = take_slot(q, wanted);

	if (!s)
		s = make_slot(q);
	if (!s)
		return NULL;
	s->next = NULL;
	if ((!wanted->whole || prepare_whole(q->device, s)) && give_room(q, s, wanted->words))
		return s;
	vk_ring_put_slots(q, s);
	return NULL;
}

void vk_ring_put_slots(struct vk_queue *q, struct vk_slot *list)
{
	spin_lock(&q->lock);
	for (struct vk_slot *next; list; list = next) {
		struct vk_slot **to = &q->slots[list_of(&list->content)];

		next = list->next;
		list->next = *to;
		*to = list;
	}
	spin_unlock(&q->lock);
}

/* ---- fences, where there are no timeline semaphores ---------------------------------------------------- */

VkFence vk_ring_fence(struct vk_queue *q)
{
	VkFenceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	struct vk_device *d = q->device;
	VkFence fence = VK_NULL_HANDLE;

	spin_lock(&q->lock);
	if (q->fences)
		fence = q->fence[--q->fences];
	spin_unlock(&q->lock);
	if (fence && d->fn.vkResetFences(d->handle, 1, &fence) == VK_SUCCESS)
		return fence;
	return d->fn.vkCreateFence(d->handle, &info, NULL, &fence) == VK_SUCCESS ? fence : VK_NULL_HANDLE;
}

void vk_ring_put_fence(struct vk_queue *q, VkFence fence)
{
	bool kept;

	spin_lock(&q->lock);
	kept = q->fences < VK_FENCES;
	if (kept)
		q->fence[q->fences++] = fence;
	spin_unlock(&q->lock);
	if (!kept)
		q->device->fn.vkDestroyFence(q->device->handle, fence, NULL);
}
