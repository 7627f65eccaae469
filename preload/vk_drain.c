/*
 * vk_drain.c - submits that are done: their results are plain memory by now, and are told.
 *
 * Nothing here waits. Several threads may find something done while one of them is busy telling: so each first marks what
 * it found with the moment when it did, and leaves the telling to the one that is at it. The end of what nobody timed is
 * that moment.
 */
#include "vk.h"

static struct pool submit_pool = POOL(struct vk_submit), part_pool = POOL(struct vk_part);

struct vk_submit *vk_submit_new(u64 begin)
{
	struct vk_submit *s = pool_get(&submit_pool);

	if (s) {
		s->begin = begin;
		s->parts_end = &s->parts;
	}
	return s;
}

struct vk_part *vk_submit_part(struct vk_submit *s, struct vk_recording *r)
{
	struct vk_part *p = pool_get(&part_pool);

	if (!p)
		return NULL;
	if (r)
		__atomic_add_fetch(&r->references, 1, __ATOMIC_RELAXED);
	p->recording = r;
	*s->parts_end = p;
	s->parts_end = &p->next;
	return p;
}

/* ---- one submit ------------------------------------------------------------------------------------ */

static struct rec_work_done by_stamps(const struct vk_queue *q, const u64 *stamp)
{
	struct vk_device *d = q->device;
	u32 bits = d->family[q->family].bits;
	u64 start = vk_clock_ns(d, bits, stamp[0]), end = vk_clock_ns(d, bits, stamp[1]);

	if (start && end >= start)
		return (struct rec_work_done){ .status = DONE_TIMED, .start = start, .end = end };
	return (struct rec_work_done){ .status = DONE_UNTIMED };
}

/* Nobody timed it: from when it was handed over, or the queue was done with what came before, to now. */
static struct rec_work_done by_host(const struct vk_queue *q, const struct vk_submit *s, u64 now)
{
	u64 start = s->begin > q->observed ? s->begin : q->observed;

	return (struct rec_work_done){ .status = DONE_OBSERVED, .start = start < now ? start : now, .end = now };
}

static u64 tell(u64 work, struct rec_work_done r)
{
	r.id = work;
	work_done_note(&r);
	return r.status == DONE_TIMED ? r.end : 0;
}

/* How the batch that begins with this part ended, as a whole. */
static struct rec_work_done end_of_batch(const struct vk_queue *q, const struct vk_submit *s, const struct vk_part *p, u32 status, u64 now)
{
	while (p && p->recording)
		p = p->next;
	if (!p || status != DONE_TIMED)
		return (struct rec_work_done){ .status = status == DONE_TIMED ? DONE_UNTIMED : status };
	return p->stamps ? by_stamps(q, p->stamps) : by_host(q, s, now);
}

/* ... and what that says of those in it that have no times of their own. */
static struct rec_work_done inside(struct rec_work_done whole)
{
	static const u8 status[] = {
		[DONE_TIMED] = DONE_IN_TIMED, [DONE_OBSERVED] = DONE_IN_OBSERVED, [DONE_UNTIMED] = DONE_UNTIMED, [DONE_FAILED] = DONE_FAILED,
		[DONE_IN_OBSERVED] = DONE_IN_OBSERVED,
	};

	whole.status = status[whole.status];
	return whole;
}

static u64 tell_ops(struct vk_queue *q, u32 ops, u64 work, const u64 *stamps, const struct rec_work_done *whole)
{
	u64 last = 0;

	for (u32 i = 0; i < ops; i++)
		last = tell(work + i, stamps ? by_stamps(q, stamps + i * 2ull) : inside(*whole));
	return last;
}

/* The stamps of a recording's own ops come first, then those of its children that have any. */
static u64 tell_recording(struct vk_queue *q, const struct vk_part *p, u32 status, const struct rec_work_done *whole)
{
	const struct vk_recording *r = p->recording;
	const u64 *stamps = status == DONE_TIMED ? p->stamps : NULL;
	u64 work = p->work, last = tell_ops(q, r->ops, work, r->stamped ? stamps : NULL, whole);

	work += r->ops;
	if (stamps && r->stamped)
		stamps += r->ops * 2ull;
	for (const struct vk_child *c = r->children; c; c = c->next) {
		bool timed = stamps && c->buffer;
		u64 end = tell_ops(q, c->recording->ops, work, timed ? stamps : NULL, whole);

		last = end > last ? end : last;
		work += c->recording->ops;
		if (timed)
			stamps += c->recording->ops * 2ull;
	}
	return last;
}

void vk_submit_over(struct vk_queue *q, struct vk_submit *s, u32 status, u64 now)
{
	struct rec_work_done whole = end_of_batch(q, s, s->parts, status, now);
	bool seen = false;
	u64 last = 0;

	for (struct vk_part *p = s->parts, *next; p; p = next) {
		u64 end = p->recording ? tell_recording(q, p, status, &whole) : tell(p->work, whole);

		next = p->next;
		last = end > last ? end : last;
		if (!p->recording) {
			seen |= whole.status == DONE_OBSERVED;
			whole = end_of_batch(q, s, next, status, now);
			if (seen && whole.status == DONE_OBSERVED)      /* all are seen to end at once: the first stands for them */
				whole = inside(whole);
		}
		vk_recording_drop(p->recording);
		pool_put(&part_pool, p);
	}
	if (last)
		vk_clock_bound(q->device, s->begin, ticks(), last);
	q->observed = now;
	vk_ring_put_slots(q, s->slots);
	if (s->fence)
		vk_ring_put_fence(q, s->fence);
	pool_put(&submit_pool, s);
}

/* ---- all that is done --------------------------------------------------------------------------------- */

static void mark_locked(struct vk_queue *q, u64 reached, u64 now)
{
	for (struct vk_submit *s = q->pending; s && s->mark <= reached; s = s->next)
		if (!s->seen)
			s->seen = now;
}

static void mark_seen(struct vk_queue *q, u64 reached, u64 now)
{
	spin_lock(&q->lock);
	mark_locked(q, reached, now);
	spin_unlock(&q->lock);
}

/*
 * A program that waited knows for certain, while our semaphore may lag behind its fence. A fence stands for all that was
 * submitted to its queue before it; of several pending submits with the same fence the last is meant.
 */
void vk_seen_fence(struct vk_device *d, VkFence fence, u64 now)
{
	for (struct vk_queue *q = __atomic_load_n(&d->queues, __ATOMIC_ACQUIRE); q; q = q->next) {
		u64 reached = 0;

		if (!__atomic_load_n(&q->pending, __ATOMIC_ACQUIRE))
			continue;
		spin_lock(&q->lock);
		for (const struct vk_submit *s = q->pending; s; s = s->next)
			if (s->told == fence)
				reached = s->mark;
		mark_locked(q, reached, now);
		spin_unlock(&q->lock);
	}
}

void vk_seen_idle(struct vk_queue *q, u64 now) { mark_seen(q, q->mark, now); }

/* DONE_TIMED: it is over; DONE_FAILED: it never will be; DONE_UNTIMED: not yet. */
static u32 state_of(const struct vk_queue *q, const struct vk_submit *s, VkResult r)
{
	if (s->fence)
		r = q->device->fn.vkGetFenceStatus(q->device->handle, s->fence);
	else if (r == VK_SUCCESS)
		r = s->seen ? VK_SUCCESS : VK_NOT_READY;
	return r == VK_SUCCESS ? DONE_TIMED : r < 0 ? DONE_FAILED : DONE_UNTIMED;
}

static void take_first(struct vk_queue *q, struct vk_submit *s)
{
	spin_lock(&q->lock);
	q->pending = s->next;
	if (!q->pending)
		q->pending_end = &q->pending;
	spin_unlock(&q->lock);
	__atomic_store_n(&q->done, s->mark, __ATOMIC_RELEASE);
}

static void tell_done(struct vk_queue *q, VkResult r, u64 now)
{
	struct vk_submit *s;

	while ((s = __atomic_load_n(&q->pending, __ATOMIC_ACQUIRE))) {
		u32 state = state_of(q, s, r);

		if (state == DONE_UNTIMED)
			break;
		take_first(q, s);
		vk_submit_over(q, s, state, s->seen ? s->seen : now);
	}
}

static bool is_first_seen(struct vk_queue *q)
{
	bool seen;

	spin_lock(&q->lock);
	seen = q->pending && q->pending->seen;
	spin_unlock(&q->lock);
	return seen;
}

static void drain_queue(struct vk_queue *q, u64 now)
{
	struct vk_device *d = q->device;
	VkResult r = VK_SUCCESS;
	u64 reached = 0;
	bool ask;

	if (!__atomic_load_n(&q->pending, __ATOMIC_ACQUIRE))
		return;
	if (q->semaphore)
		r = d->fn.vkGetSemaphoreCounterValue(d->handle, q->semaphore, &reached);
	if (reached > __atomic_load_n(&q->done, __ATOMIC_ACQUIRE))
		mark_seen(q, reached, now);
	ask = !q->semaphore || r < 0;
	while ((ask || is_first_seen(q)) && !__atomic_exchange_n(&q->draining, 1, __ATOMIC_ACQUIRE)) {
		tell_done(q, r, now);
		__atomic_store_n(&q->draining, 0, __ATOMIC_RELEASE);
		ask = false;                    /* again if another marked something and found us at it */
	}
}

/* The device is lost: what is pending will never be heard of. */
void vk_drain_failed(struct vk_queue *q)
{
	while (q->pending) {
		struct vk_submit *s = q->pending;

		take_first(q, s);
		vk_submit_over(q, s, DONE_FAILED, ticks());
	}
}

void vk_drain(struct vk_device *d, u64 now)
{
	for (struct vk_queue *q = __atomic_load_n(&d->queues, __ATOMIC_ACQUIRE); q; q = q->next)
		drain_queue(q, now);
	vk_clock_read(d, false);
}
