/*
 * vk_submit.c - submits: what is in them, and that it was handed over.
 *
 * A submit becomes a plan (vk_plan.h): which of the recordings in it are timed, and whether it is timed as a whole. Then our
 * own command buffers are prepared (vk_post.c), its work is told, it goes to the driver (vk_hand.c) and is pending.
 */
#include "vk_plan.h"

enum { BATCHES = 16, PENDING_FEW = 8 };

/* ---- what is in it ---------------------------------------------------------------------------------- */

static bool is_at_work(const struct vk_recording *r)
{
	return __atomic_load_n(&r->queue->done, __ATOMIC_ACQUIRE) < r->mark;
}

static bool is_at_work_elsewhere(const struct vk_queue *q, const struct vk_recording *r)
{
	if (likely(!r->queue || r->queue == q) || !is_at_work(r))
		return false;
	vk_drain(q->device, ticks());           /* it may be long over, and nobody asked */
	return is_at_work(r);
}

/* Its stamps, and those of what is executed in it, go to one set of queries, which cannot hold two runs on two queues at once. */
static bool is_elsewhere(const struct vk_queue *q, const struct vk_recording *r)
{
	static u32 told;
	bool elsewhere = is_at_work_elsewhere(q, r);

	for (const struct vk_child *c = r->children; c && !elsewhere; c = c->next)
		elsewhere = is_at_work_elsewhere(q, c->recording);
	if (likely(!elsewhere))
		return false;
	if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
		notice_note("a Vulkan command buffer ran on two queues at once: its kernels are counted, but not timed there");
	return true;
}

/* It is at work there until that mark is reached. */
static void note_place(struct vk_queue *q, struct vk_recording *r)
{
	r->queue = q;
	r->mark = q->mark + 1;
	for (struct vk_child *c = r->children; c; c = c->next) {
		c->recording->queue = q;
		c->recording->mark = q->mark + 1;
	}
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

	b->late |= !r || r->late;
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
	if (words)
		note_place(p->queue, r);
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
	if (q->labels && q->labels <= VK_LABELS && q->label[q->labels - 1])
		args_text(&a, "queue_label", q->label[q->labels - 1]);
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
			tell_op(q, &(struct vk_op){ .kind = WORK_GROUP, .name = p->name }, id++);
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

/* ---- its end ------------------------------------------------------------------------------------------------- */

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
	r = vk_plan_submit(p, fence);
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
		r = vk_plan_plain(p, queue, count, fence);
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
