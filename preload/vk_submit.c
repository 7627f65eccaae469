/*
 * vk_submit.c - submits and waits.
 *
 *   the program's batch    [pre] its command buffers [post]      pre, post: ours (vk_ring.c)
 *   one more batch         signals our semaphore
 *
 * `post` copies the stamps of the batch to memory that the host can read. It belongs to the program's own batch: when the
 * program learns that the batch is over, by fence or semaphore, our copy is over too, and the program may reset or free
 * its command buffers. The program's structures are copied, not changed.
 */
#include "vk_plan.h"

enum { STACK_BYTES = 6144 };

/* ---- what is in it ---------------------------------------------------------------------------------- */

/* Its stamps go to one set of queries, which cannot hold two runs on two queues at once. */
static bool is_elsewhere(const struct vk_queue *q, struct vk_recording *r)
{
	static u32 told;
	bool at_work = r->queue && r->queue != q && __atomic_load_n(&r->queue->done, __ATOMIC_ACQUIRE) < r->mark;

	if (at_work && !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		notice_note("a Vulkan command buffer ran on two queues at once: its kernels are counted, but not timed there");
	return at_work;
}

static u64 words_of(const struct vk_recording *r)
{
	u64 words = r->stamped ? r->ops * 2ull : 0;

	for (const struct vk_child *c = r->children; c; c = c->next)
		words += c->buffer ? c->recording->ops * 2ull : 0;
	return words;
}

/* A command buffer comes again in its batch: its stamps are to be taken before that. */
static void take_early(struct batch *b, const struct vk_part *again)
{
	struct vk_part *before = NULL;

	for (struct vk_part *p = b->parts; p != again; p = p->next)
		if (p->recording == again->recording)
			before = p;
	if (before && before->stamps) {
		before->early = true;
		b->early++;
	}
}

/* `stamps` counts words from 1 for now: where they will lie is not known yet. */
static void plan_buffer(struct plan *p, struct batch *b, struct vk_command_buffer *c, bool *other)
{
	struct vk_recording *r = c ? c->recording : NULL;
	struct vk_part *part = r && r->total ? vk_submit_part(p->submit, r) : NULL;
	u64 words;

	*other |= !r || r->other;
	if (!part)
		return;
	if (!b->parts)
		b->parts = part;
	p->works += r->total;
	words = p->queue->stamps && !b->refused && p->marked && !is_elsewhere(p->queue, r) ? words_of(r) : 0;
	*other |= words < r->total * 2ull;
	if (!words)
		return;
	part->stamps = (const u64 *)(b->words * 8 + 8);
	b->words += words;
	if (r->queue == p->queue && r->mark == p->queue->mark + 1)
		take_early(b, part);
	r->queue = p->queue;
	r->mark = p->queue->mark + 1;
}

/* A batch is shown as a whole where its pieces are not timed, and where there is more in it than them. */
static void plan_batch(struct plan *p, struct batch *b)
{
	struct vk_part **before = p->submit->parts_end, *whole;
	bool other = false, timed = p->queue->stamps && !b->refused && p->marked;

	for (u32 i = 0; i < b->count; i++)
		plan_buffer(p, b, vk_command_buffer_of(handle_in(b, i)), &other);
	p->buffers += b->count;
	if (b->count && (other || !b->parts || !timed || guest.control->device_time != DEVICE_TIME_KERNEL)) {
		whole = vk_submit_part(p->submit, NULL);
		if (whole && timed) {
			whole->stamps = (const u64 *)(b->words * 8 + 8);
			b->words += 2;
			b->whole = true;
		}
		p->works += whole != NULL;
	}
	b->parts = *before;
	p->words += b->words;
}

/* ---- telling it ------------------------------------------------------------------------------------------ */

static void tell_op(const struct vk_queue *q, const struct vk_op *op, u64 id)
{
	struct args a;

	a.used = 0;
	if (op->label)
		args_text(&a, "label", op->label);
	if (op->indirect)
		args_text(&a, "groups", "known to the device only");
	work_note(&(struct rec_work){ id, q->number, op->kind, op->name, op->site, op->bytes, op->x, op->y, op->z, op->local }, &a);
}

static u64 tell_recording(const struct vk_queue *q, const struct vk_recording *r, u64 id)
{
	for (const struct vk_block *b = r->first; b; b = b->next)
		for (u32 i = 0; i < b->used; i++)
			tell_op(q, &b->op[i], id++);
	for (const struct vk_child *c = r->children; c; c = c->next)
		id = tell_recording(q, c->recording, id);
	return id;
}

/* Before it is submitted: another thread may see its end before the call returns. */
static u64 tell_works(struct plan *p, const char *call)
{
	u64 first = work_numbers(p->works), id = first;
	const struct vk_queue *q = p->queue;

	for (struct vk_part *part = p->submit->parts; part; part = part->next) {
		part->work = id;
		if (part->recording)
			id = tell_recording(q, part->recording, id);
		else
			tell_op(q, &(struct vk_op){ .kind = WORK_GROUP, .name = name_number(call),
						    .label = q->labels && q->labels <= VK_LABELS ? q->label[q->labels - 1] : NULL }, id++);
	}
	return first;
}

static void tell_call(struct plan *p, u64 begin, const char *name, u64 work, VkResult r, struct caller at)
{
	struct args a;

	a.used = 0;
	args_number(&a, "batches", p->batches);
	args_number(&a, "command_buffers", p->buffers);
	call_note(begin, &(struct call){ CALL_SUBMIT, name_number(name), p->works ? work : 0, p->works, r < 0 ? r : 0 }, &a, at);
}

/* ---- handing it over ---------------------------------------------------------------------------------------- */

/* The batch with ours between its own. Returns the end of the list. */
static VkCommandBuffer *fill_one(const struct batch *b, VkCommandBuffer *to)
{
	const struct vk_part *part = b->parts;

	if (b->whole)
		*to++ = b->slot->pre;
	for (u32 i = 0; i < b->count; i++) {
		*to++ = handle_in(b, i);
		if (!b->early || !part || !part->recording)
			continue;
		if (vk_command_buffer_of(handle_in(b, i)) && vk_command_buffer_of(handle_in(b, i))->recording == part->recording) {
			if (part->slot)
				*to++ = part->slot->post;
			part = part->next;
		}
	}
	*to++ = b->slot->post;
	return to;
}

/* Our own command buffers are never the program's: so its infos fit where the handles are the same. */
static VkCommandBufferSubmitInfo *fill_two(const struct batch *b, VkCommandBuffer *scratch, VkCommandBufferSubmitInfo *to)
{
	const VkCommandBuffer *end = fill_one(b, scratch);
	u32 own = 0;

	for (const VkCommandBuffer *at = scratch; at < end; at++)
		if (own < b->count && *at == b->two[own].commandBuffer)
			*to++ = b->two[own++];
		else
			*to++ = (VkCommandBufferSubmitInfo){ .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = *at };
	return to;
}

static size_t list_length(const struct plan *p)
{
	size_t n = p->buffers + 2ul * p->batches;

	for (u32 i = 0; i < p->batches; i++)
		n += p->batch[i].early;
	return n;
}

static VkResult submit_one(struct plan *p, const VkSubmitInfo *infos, VkFence fence, VkSubmitInfo *copy)
{
	struct vk_queue *q = p->queue;
	VkCommandBuffer *list = (VkCommandBuffer *)(copy + p->batches + 1);
	u64 mark = q->mark + 1;
	VkTimelineSemaphoreSubmitInfo value = {
		.sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, .signalSemaphoreValueCount = 1, .pSignalSemaphoreValues = &mark,
	};

	for (u32 i = 0; i < p->batches; i++) {
		copy[i] = infos[i];
		if (!p->batch[i].slot)
			continue;
		copy[i].pCommandBuffers = list;
		list = fill_one(&p->batch[i], list);
		copy[i].commandBufferCount = (u32)(list - copy[i].pCommandBuffers);
	}
	copy[p->batches] = (VkSubmitInfo){ .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .pNext = &value, .signalSemaphoreCount = 1,
					   .pSignalSemaphores = &q->semaphore };
	return q->device->fn.vkQueueSubmit(q->handle, p->batches + (q->semaphore && p->marked), copy, fence);
}

static VkResult submit_two(struct plan *p, const VkSubmitInfo2 *infos, VkFence fence, VkSubmitInfo2 *copy)
{
	struct vk_queue *q = p->queue;
	VkCommandBufferSubmitInfo *list = (VkCommandBufferSubmitInfo *)(copy + p->batches + 1);
	VkCommandBuffer *scratch = (VkCommandBuffer *)(list + list_length(p));
	VkSemaphoreSubmitInfo signal = {
		.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO, .semaphore = q->semaphore, .value = q->mark + 1,
		.stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
	};

	for (u32 i = 0; i < p->batches; i++) {
		copy[i] = infos[i];
		if (!p->batch[i].slot)
			continue;
		copy[i].pCommandBufferInfos = list;
		list = fill_two(&p->batch[i], scratch, list);
		copy[i].commandBufferInfoCount = (u32)(list - copy[i].pCommandBufferInfos);
	}
	copy[p->batches] = (VkSubmitInfo2){ .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2, .signalSemaphoreInfoCount = 1, .pSignalSemaphoreInfos = &signal };
	return q->device->fn.vkQueueSubmit2(q->handle, p->batches + (q->semaphore && p->marked), copy, fence);
}

/* Copies of the program's structures lie on the stack, if there are not too many. */
static VkResult submit(struct plan *p, const VkSubmitInfo *one, const VkSubmitInfo2 *two, VkFence fence)
{
	const struct vk_functions *fn = &p->queue->device->fn;
	char stack[STACK_BYTES] __attribute__((aligned(16)));
	size_t each = sizeof(VkCommandBuffer) + (two ? sizeof(VkCommandBufferSubmitInfo) : 0);
	size_t bytes = (p->batches + 1) * (one ? sizeof *one : sizeof *two) + list_length(p) * each;
	void *room = bytes > sizeof stack ? sys_memory(bytes) : stack;
	VkResult r;

	if (!room) {                            /* as it is, then */
		vk_plan_untime(p);
		p->marked = false;
		return one ? fn->vkQueueSubmit(p->queue->handle, p->batches, one, fence) : fn->vkQueueSubmit2(p->queue->handle, p->batches, two, fence);
	}
	r = one ? submit_one(p, one, fence, room) : submit_two(p, two, fence, room);
	if (room != stack)
		sys_munmap(room, bytes);
	return r;
}

/* Without a timeline semaphore, a fence of our own is submitted behind it. */
static void mark_with_fence(struct plan *p)
{
	struct vk_queue *q = p->queue;

	p->submit->fence = vk_ring_fence(q);
	if (p->submit->fence && q->device->fn.vkQueueSubmit(q->handle, 0, NULL, p->submit->fence) == VK_SUCCESS)
		return;
	if (p->submit->fence)
		vk_ring_put_fence(q, p->submit->fence);
	p->submit->fence = VK_NULL_HANDLE;
	p->marked = false;
}

static void push(struct vk_queue *q, struct vk_submit *s)
{
	s->mark = ++q->mark;
	spin_lock(&q->lock);
	*q->pending_end = s;
	q->pending_end = &s->next;
	spin_unlock(&q->lock);
}

/* What nobody can tell the end of keeps its command buffers: they may be at work yet. */
static void after(struct plan *p, VkResult r)
{
	struct vk_queue *q = p->queue;

	if (r == VK_SUCCESS && p->marked && !q->semaphore)
		mark_with_fence(p);
	if (r == VK_SUCCESS && p->marked) {
		push(q, p->submit);
		return;
	}
	if (r == VK_SUCCESS) {
		p->submit->slots = NULL;
		p->submit->arena = NULL;
		vk_plan_untime(p);
	}
	vk_submit_over(q, p->submit, r == VK_SUCCESS ? DONE_UNTIMED : DONE_FAILED, ticks());
}

static VkResult run(struct plan *p, const char *name, const VkSubmitInfo *one, const VkSubmitInfo2 *two, VkFence fence, struct caller at, u64 begin)
{
	u64 work = 0;
	VkResult r;

	p->submit->told = fence;
	p->marked = vk_ring_start(p->queue);
	for (u32 i = 0; i < p->batches; i++)
		plan_batch(p, &p->batch[i]);
	p->marked &= p->works != 0;
	vk_plan_prepare(p);
	if (p->works)
		work = tell_works(p, name);
	r = submit(p, one, two, fence);
	after(p, r);
	tell_call(p, begin, name, work, r, at);
	vk_drain(p->queue->device, ticks());
	return r;
}

/* ---- vkQueueSubmit ----------------------------------------------------------------------------------------- */

enum { BATCHES = 16 };

/* Devices that work together have a list as long as that of the command buffers; protected memory cannot be copied from. */
static bool must_stay(const void *chain)
{
	const VkProtectedSubmitInfo *p = vk_in_chain(chain, VK_STRUCTURE_TYPE_PROTECTED_SUBMIT_INFO);

	return (p && p->protectedSubmit) || vk_in_chain(chain, VK_STRUCTURE_TYPE_DEVICE_GROUP_SUBMIT_INFO);
}

/* The fields of a plan that the caller's stack holds, or memory of our own. */
static bool plan_start(struct plan *p, struct batch *few, u32 count, u64 begin)
{
	p->batches = count;
	p->batch = count <= BATCHES ? few : sys_memory(count * sizeof *few);
	p->submit = p->batch ? vk_submit_new(begin) : NULL;
	return p->submit;
}

static void plan_end(struct plan *p)
{
	if (p->batches > BATCHES && p->batch)
		sys_munmap(p->batch, p->batches * sizeof *p->batch);
}

VkResult w_vkQueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence)
{
	struct vk_queue *q = vk_queue_of(queue);
	struct plan p = { .queue = q };
	struct batch few[BATCHES];
	u64 begin = api_enter();
	VkResult r;

	if (!q || !begin || !count || !vk_ours(q->device) || !vk_wanted() || !plan_start(&p, few, count, begin)) {
		r = VK_CALL(DEVICE(q), vkQueueSubmit)(queue, count, infos, fence);
		vk_call_note(begin, CALL_SUBMIT, "vkQueueSubmit", r, NULL, CALLER());
	} else {
		for (u32 i = 0; i < count; i++)
			p.batch[i] = (struct batch){ .count = infos[i].commandBufferCount, .one = infos[i].pCommandBuffers,
						     .refused = must_stay(infos[i].pNext) };
		r = run(&p, "vkQueueSubmit", infos, NULL, fence, CALLER(), begin);
	}
	plan_end(&p);
	api_leave();
	return r;
}

static bool has_masks(const VkSubmitInfo2 *info)
{
	for (u32 i = 0; i < info->commandBufferInfoCount; i++)
		if (info->pCommandBufferInfos[i].deviceMask > 1)
			return true;
	return info->flags & VK_SUBMIT_PROTECTED_BIT;
}

VkResult w_vkQueueSubmit2(VkQueue queue, uint32_t count, const VkSubmitInfo2 *infos, VkFence fence)
{
	struct vk_queue *q = vk_queue_of(queue);
	struct plan p = { .queue = q };
	struct batch few[BATCHES];
	u64 begin = api_enter();
	VkResult r;

	if (!q || !begin || !count || !vk_ours(q->device) || !vk_wanted() || !plan_start(&p, few, count, begin)) {
		r = VK_CALL(DEVICE(q), vkQueueSubmit2)(queue, count, infos, fence);
		vk_call_note(begin, CALL_SUBMIT, "vkQueueSubmit2", r, NULL, CALLER());
	} else {
		for (u32 i = 0; i < count; i++)
			p.batch[i] = (struct batch){ .count = infos[i].commandBufferInfoCount, .two = infos[i].pCommandBufferInfos,
						     .refused = has_masks(&infos[i]) };
		r = run(&p, "vkQueueSubmit2", NULL, infos, fence, CALLER(), begin);
	}
	plan_end(&p);
	api_leave();
	return r;
}
