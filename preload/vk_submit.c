/*
 * vk_submit.c - submits and waits.
 *
 *   the program's batch    [pre] its command buffers [post]      pre, post: ours (vk_ring.c)
 *   its last one           signals our semaphore, too
 *
 * `post` copies the stamps of the batch to memory that the host can read. It belongs to the program's own batch: when the
 * program learns that the batch is over, by fence or semaphore, our copy is over too, and the program may reset or free
 * its command buffers. The program's structures are copied, not changed.
 */
#include "vk_plan.h"

enum { STACK_BYTES = 6144, BATCHES = 16, PENDING_FEW = 8 };

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

	for (struct vk_part *p = b->first; p != again; p = p->next)
		if (p->recording == again->recording)
			before = p;
	if (before && before->words) {
		before->early = true;
		b->early++;
	}
}

static struct vk_part *add_part(struct plan *p, struct batch *b, struct vk_recording *r, u64 words)
{
	struct vk_part *part = vk_submit_part(p->submit, r);

	if (!part)
		return NULL;
	if (!b->first)
		b->first = part;
	b->last = part;
	b->timed |= words != 0;
	part->words = words;
	return part;
}

/* True: not all of it is timed piece by piece. */
static bool plan_buffer(struct plan *p, struct batch *b, u32 index, bool timed)
{
	struct vk_command_buffer *c = vk_command_buffer_of(handle_in(b, index));
	struct vk_recording *r = c ? c->recording : NULL;
	struct vk_part *part;
	u64 words;

	if (!r || !r->total)
		return !r || r->other;
	words = timed && !is_elsewhere(p->queue, r) ? words_of(r) : 0;
	part = add_part(p, b, r, words);
	if (!part)
		return true;
	part->from = c;
	part->index = index;
	p->works += r->total;
	if (words && r->queue == p->queue && r->mark == p->queue->mark + 1)
		take_early(b, part);
	if (words) {
		r->queue = p->queue;
		r->mark = p->queue->mark + 1;
	}
	return r->other || words < r->total * 2ull;
}

/* A batch is shown as a whole where its pieces are not timed, and where there is more in it than them. */
static void plan_batch(struct plan *p, struct batch *b)
{
	bool other = false, timed = p->queue->stamps && !b->refused && p->marked;

	for (u32 i = 0; i < b->count; i++)
		other |= plan_buffer(p, b, i, timed);
	p->buffers += b->count;
	if (!b->count || (!other && b->first && timed && guest.control->device_time == DEVICE_TIME_KERNEL))
		return;
	if (add_part(p, b, NULL, timed ? 2 : 0)) {
		p->works++;
		b->whole = timed;
	}
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
static u64 tell_works(struct plan *p)
{
	u64 first = work_numbers(p->works), id = first;
	const struct vk_queue *q = p->queue;

	for (struct vk_part *part = p->submit->parts; part; part = part->next) {
		part->work = id;
		if (part->recording)
			id = tell_recording(q, part->recording, id);
		else
			tell_op(q, &(struct vk_op){ .kind = WORK_GROUP, .name = p->name,
						    .label = q->labels && q->labels <= VK_LABELS ? q->label[q->labels - 1] : NULL }, id++);
	}
	return first;
}

static void tell_call(struct plan *p, u64 begin, u64 work, VkResult r, struct caller at)
{
	struct args a;

	a.used = 0;
	args_number(&a, "batches", p->batches);
	args_number(&a, "command_buffers", p->buffers);
	call_note(begin, &(struct call){ CALL_SUBMIT, p->name, p->works ? work : 0, p->works, r < 0 ? r : 0 }, &a, at);
}

/* ---- handing it over ---------------------------------------------------------------------------------------- */

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
static void signal_one(struct vk_queue *q, VkSubmitInfo *info, bool chained, struct room *room)
{
	u32 n = info->signalSemaphoreCount;
	VkTimelineSemaphoreSubmitInfo *values = TAKE(room, VkTimelineSemaphoreSubmitInfo, 1);
	VkSemaphore *list = TAKE(room, VkSemaphore, n + 1);
	u64 *value = TAKE(room, u64, n + 1);

	*values = (VkTimelineSemaphoreSubmitInfo){ .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, .pNext = info->pNext };
	if (chained)
		*values = *(const VkTimelineSemaphoreSubmitInfo *)info->pNext;
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
	const VkSubmitInfo *end = &p->one[last];

	for (u32 i = 0; i < count; i++) {
		copy[i] = p->one[i];
		if (!p->batch[i].slot)
			continue;
		copy[i].pCommandBuffers = TAKE(room, VkCommandBuffer, list_length(&p->batch[i]));
		copy[i].commandBufferCount = fill(&p->batch[i], (VkCommandBuffer *)copy[i].pCommandBuffers);
	}
	if (p->queue->semaphore && !can_join(&p->batch[last], end->pNext)) {
		copy[count] = (VkSubmitInfo){ .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO };
		last = count++;
	}
	if (p->queue->semaphore)
		signal_one(p->queue, &copy[last], last < p->batches && vk_in_chain(end->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO), room);
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

/* As the program said it. */
static VkResult submit_plain(const struct plan *p, VkQueue queue, u32 count, VkFence fence)
{
	const struct vk_device *d = DEVICE(p->queue);

	return p->second ? VK_CALL(d, vkQueueSubmit2)(queue, count, p->two, fence) : VK_CALL(d, vkQueueSubmit)(queue, count, p->one, fence);
}

/* The copies lie on the stack, if they are not too many. */
static VkResult submit(struct plan *p, VkFence fence)
{
	char stack[STACK_BYTES] __attribute__((aligned(16)));
	size_t bytes = room_for(p);
	char *memory = !p->marked ? NULL : bytes > sizeof stack ? sys_memory(bytes) : stack;
	struct room room = { memory };
	VkResult r;

	if (!memory) {
		vk_plan_untime(p);
		p->marked = false;
		return submit_plain(p, p->queue->handle, p->batches, fence);
	}
	r = p->second ? submit_two(p, fence, &room) : submit_one(p, fence, &room);
	if (memory != stack)
		sys_munmap(memory, bytes);
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
		vk_plan_untime(p);
	}
	vk_submit_over(q, p->submit, r == VK_SUCCESS ? DONE_UNTIMED : DONE_FAILED, ticks());
}

/* What is done is told at the program's waits, unless much has come together; where the host's eyes are all there is, at once. */
static void drain_some(const struct vk_queue *q)
{
	if (!q->stamps || q->mark - __atomic_load_n(&q->done, __ATOMIC_RELAXED) >= PENDING_FEW)
		vk_drain(q->device, ticks());
}

static VkResult run(struct plan *p, VkFence fence, struct caller at, u64 begin)
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
		work = tell_works(p);
	r = submit(p, fence);
	after(p, r);
	tell_call(p, begin, work, r, at);
	drain_some(p->queue);
	return r;
}

/* ---- vkQueueSubmit ----------------------------------------------------------------------------------------- */

/* Devices that work together have a list as long as that of the command buffers; protected memory cannot be copied from. */
static bool must_stay(const VkSubmitInfo *info)
{
	const VkProtectedSubmitInfo *p = vk_in_chain(info->pNext, VK_STRUCTURE_TYPE_PROTECTED_SUBMIT_INFO);

	return (p && p->protectedSubmit) || vk_in_chain(info->pNext, VK_STRUCTURE_TYPE_DEVICE_GROUP_SUBMIT_INFO);
}

static bool must_stay2(const VkSubmitInfo2 *info)
{
	for (u32 i = 0; i < info->commandBufferInfoCount; i++)
		if (info->pCommandBufferInfos[i].deviceMask > 1)
			return true;
	return info->flags & VK_SUBMIT_PROTECTED_BIT;
}

static struct batch batch_of(const struct plan *p, u32 i)
{
	if (!p->second)
		return (struct batch){ .count = p->one[i].commandBufferCount, .one = p->one[i].pCommandBuffers, .refused = must_stay(&p->one[i]) };
	return (struct batch){ .count = p->two[i].commandBufferInfoCount, .two = p->two[i].pCommandBufferInfos, .refused = must_stay2(&p->two[i]) };
}

static VkResult submitted(struct plan *p, VkQueue queue, u32 count, VkFence fence, struct caller at)
{
	struct vk_queue *q = p->queue = vk_queue_of(queue);
	struct batch few[BATCHES];
	u64 begin = api_enter();
	VkResult r;

	if (q && begin && count && vk_ours(q->device) && vk_wanted()) {
		p->batches = count;
		p->batch = count <= BATCHES ? few : sys_memory(count * sizeof *few);
		p->submit = p->batch ? vk_submit_new(begin) : NULL;
	}
	if (p->submit) {
		for (u32 i = 0; i < count; i++)
			p->batch[i] = batch_of(p, i);
		r = run(p, fence, at, begin);
	} else {
		r = submit_plain(p, queue, count, fence);
		vk_call_note(begin, CALL_SUBMIT, p->name, r, NULL, at);
	}
	if (p->batch && p->batch != few)
		sys_munmap(p->batch, count * sizeof *few);
	api_leave();
	return r;
}

VkResult w_vkQueueSubmit(VkQueue queue, uint32_t count, const VkSubmitInfo *infos, VkFence fence)
{
	return submitted(&(struct plan){ .one = infos, .name = NAMED("vkQueueSubmit") }, queue, count, fence, CALLER());
}

VkResult w_vkQueueSubmit2(VkQueue queue, uint32_t count, const VkSubmitInfo2 *infos, VkFence fence)
{
	return submitted(&(struct plan){ .two = infos, .second = true, .name = NAMED("vkQueueSubmit2") }, queue, count, fence, CALLER());
}
