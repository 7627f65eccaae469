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
#include "vk.h"

enum { STACK_BYTES = 6144 };

/* A VkSubmitInfo or VkSubmitInfo2. */
struct batch {
	u32 count;
	const VkCommandBuffer *one;
	const VkCommandBufferSubmitInfo *two;
	bool refused;                   /* must stay as it is */
	bool whole;                     /* timed as one piece */
	u64 words;                      /* of results */
	struct vk_slot *slot;
	struct vk_part *parts;          /* its first */
	u32 early;                      /* how many of them have a slot of their own */
};

struct plan {
	struct vk_queue *queue;
	struct vk_submit *submit;
	u32 batches, buffers, works;
	struct batch *batch;
	u64 words;
	bool marked;                    /* its end can be seen */
};

static VkCommandBuffer handle_in(const struct batch *b, u32 i)
{
	return b->one ? b->one[i] : b->two[i].commandBuffer;
}

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
	words = words_of(r);
	if (!words || !p->queue->stamps || b->refused || !p->marked || is_elsewhere(p->queue, r))
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

/* ---- our own command buffers -------------------------------------------------------------------------- */

static void copy_children(const struct vk_functions *fn, const struct vk_recording *r, VkCommandBuffer in, VkBuffer to, u64 offset)
{
	for (const struct vk_child *c = r->children; c; c = c->next) {
		VkBufferCopy range = { c->offset, offset, c->recording->ops * 16ull };

		if (!c->buffer)
			continue;
		fn->vkCmdCopyBuffer(in, c->buffer, to, 1, &range);
		offset += range.size;
	}
}

static void barrier(const struct vk_functions *fn, VkCommandBuffer in, VkPipelineStageFlags to, VkAccessFlags access)
{
	VkMemoryBarrier memory = { VK_STRUCTURE_TYPE_MEMORY_BARRIER, NULL, VK_ACCESS_TRANSFER_WRITE_BIT, access };

	fn->vkCmdPipelineBarrier(in, VK_PIPELINE_STAGE_TRANSFER_BIT, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

static void copy_part(const struct vk_functions *fn, struct vk_command_buffer *c, const struct vk_part *part, VkCommandBuffer in, VkBuffer to,
		      const u64 *base)
{
	const struct vk_recording *r = part->recording;
	u64 offset = (u64)((const char *)part->stamps - (const char *)base);

	if (r->stamped && r->ops) {
		vk_stamps_copy(c, in, to, offset);
		offset += r->ops * 16ull;
	}
	if (r->children) {
		barrier(fn, in, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
		copy_children(fn, r, in, to, offset);
	}
}

static bool post_begin(const struct vk_functions *fn, VkCommandBuffer post)
{
	VkCommandBufferBeginInfo begin = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
	};

	return fn->vkBeginCommandBuffer(post, &begin) == VK_SUCCESS;
}

/* What comes next may write where we read. */
static bool post_end(const struct vk_functions *fn, VkCommandBuffer post)
{
	barrier(fn, post, VK_PIPELINE_STAGE_HOST_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_HOST_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT);
	return fn->vkEndCommandBuffer(post) == VK_SUCCESS;
}

static struct vk_slot *new_slot(struct plan *p, bool whole)
{
	struct vk_slot *s = vk_ring_slot(p->queue, whole);

	if (!s)
		return NULL;
	s->next = p->submit->slots;
	p->submit->slots = s;
	return post_begin(&p->queue->device->fn, s->post) ? s : NULL;
}

/* The parts of a batch come in the order of its command buffers; the batch as a whole is the last. */
static bool copy_buffers(struct plan *p, struct batch *b, VkBuffer to, const u64 *base)
{
	const struct vk_functions *fn = &p->queue->device->fn;
	struct vk_part *part = b->parts;

	for (u32 i = 0; i < b->count && part; i++) {
		struct vk_command_buffer *c = vk_command_buffer_of(handle_in(b, i));

		if (!c || !part->recording || c->recording != part->recording)
			continue;
		if (part->early) {
			part->slot = new_slot(p, false);
			if (!part->slot)
				return false;
			copy_part(fn, c, part, part->slot->post, to, base);
			if (!post_end(fn, part->slot->post))
				return false;
		} else if (part->stamps) {
			copy_part(fn, c, part, b->slot->post, to, base);
		}
		part = part->next;
	}
	return true;
}

static bool record_post(struct plan *p, struct batch *b, VkBuffer to, const u64 *base)
{
	const struct vk_functions *fn = &p->queue->device->fn;
	const struct vk_part *whole = b->parts;
	VkCommandBuffer post = b->slot->post;

	if (b->whole)
		fn->vkCmdWriteTimestamp(post, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, b->slot->pool, 1);
	if (!copy_buffers(p, b, to, base))
		return false;
	while (b->whole && whole->recording)
		whole = whole->next;
	if (b->whole)
		fn->vkCmdCopyQueryPoolResults(post, b->slot->pool, 0, 2, to, (u64)((const char *)whole->stamps - (const char *)base), 8,
					      VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT);
	return post_end(fn, post);
}

/* From counts of words to places in memory. */
static void place_stamps(struct plan *p, u64 *at)
{
	for (u32 i = 0; i < p->batches; i++) {
		struct batch *b = &p->batch[i];
		const struct vk_part *end = NULL;

		for (u32 k = i + 1; k < p->batches && !end; k++)
			end = p->batch[k].parts;
		for (struct vk_part *part = b->parts; part && part != end; part = part->next)
			if (part->stamps)
				part->stamps = (const u64 *)((char *)at + (u64)part->stamps - 8);
		at += b->words;
	}
}

static void untime(struct plan *p)
{
	for (struct vk_part *part = p->submit->parts; part; part = part->next) {
		part->stamps = NULL;
		part->slot = NULL;
	}
	for (u32 i = 0; i < p->batches; i++)
		p->batch[i].slot = NULL;
}

static bool prepare_slots(struct plan *p, const u64 *at)
{
	struct vk_queue *q = p->queue;

	place_stamps(p, (u64 *)at);
	for (u32 i = 0; i < p->batches; i++) {
		struct batch *b = &p->batch[i];

		if (!b->words)
			continue;
		b->slot = new_slot(p, b->whole);
		if (!b->slot || !record_post(p, b, q->arenas->buffer, q->arenas->at))
			return false;
	}
	return true;
}

static void prepare(struct plan *p)
{
	u64 *at = p->words && p->marked ? vk_ring_take(p->queue, p->words) : NULL;

	if (at) {
		p->submit->arena = p->queue->arenas;
		p->submit->arena_end = p->queue->arenas->head;
	}
	if (!at || !prepare_slots(p, at))
		untime(p);
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
		untime(p);
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
		untime(p);
	}
	vk_submit_over(q, p->submit, r == VK_SUCCESS ? DONE_UNTIMED : DONE_FAILED, ticks());
}

static VkResult run(struct plan *p, const char *name, const VkSubmitInfo *one, const VkSubmitInfo2 *two, VkFence fence, struct caller at, u64 begin)
{
	u64 work = 0;
	VkResult r;

	p->marked = vk_ring_start(p->queue);
	for (u32 i = 0; i < p->batches; i++)
		plan_batch(p, &p->batch[i]);
	p->marked &= p->works != 0;
	prepare(p);
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

	if (!q || !begin || !count || !vk_wanted() || !plan_start(&p, few, count, begin)) {
		r = VK_CALL(q ? q->device : NULL, vkQueueSubmit)(queue, count, infos, fence);
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

	if (!q || !begin || !count || !vk_wanted() || !plan_start(&p, few, count, begin)) {
		r = VK_CALL(q ? q->device : NULL, vkQueueSubmit2)(queue, count, infos, fence);
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
