/*
 * vk_bell.c - stamps of a Vulkan device that is the CPU, taken by ourselves.
 *
 * llvmpipe's own stamps are dear: for each it wakes all threads of its rasteriser, and at the next barrier waits for them: some
 * 50 us, and 1 KiB of the program's heap. But its queue is a thread of this process that does one command after the other, and there
 * we are at home.
 *
 *   recorded     vkCmdUpdateBuffer(bell, ring)         a ring says where the time shall be stored
 *   executed     memory for the transfer, memcpy, free -> our free() on that thread: it finds the ring, stores the time and
 *                silences the bell
 *
 * Whether that is how the driver works is tried out on each new device, before the program gets it. If not (another version,
 * another malloc before ours), the driver takes the stamps as any other does.
 */
#include "vk_bell.h"
#include "vk.h"

enum { BELLS = 4, RINGS = 16 };

static const u64 trial_ns = 1000000000;

/* The proof keeps us from taking something half written for an address. */
struct ring { u64 place, proof; };

struct vk_bell {
	const void *thread;     /* whose frees are listened to; on trial: NULL, until one has heard it */
	u64 begun;              /* ticks: the queue's thread is not older than this */
	struct ring *rung;      /* RINGS places where the driver writes, as the host sees them; NULL: there is no bell */
	u32 inside;             /* threads that look at it right now */
	u32 taken;
	VkBuffer buffer;
	VkDeviceMemory memory;
};

static struct vk_bell bells[BELLS];

static const void *thread_of(const struct vk_bell *b) { return __atomic_load_n(&b->thread, __ATOMIC_RELAXED); }

/* ---- on the queue's thread -------------------------------------------------------------------- */

static u64 proof_of(u64 place) { return ~place * 0x9e3779b97f4a7c15ull; }

static bool listens_elsewhere(void)
{
	for (u32 i = 0; i < BELLS; i++)
		if (thread_of(&bells[i]) == &tls)
			return true;
	return false;
}

/*
 * On trial, the first that hears it is the one, if it may be the queue's thread: any thread of the program that frees something at the right
 * moment would hear it, but those are older than the device, or belong to another one.
 */
static bool is_listener(struct vk_bell *b)
{
	const void *nobody = NULL;

	if (thread_of(b) == &tls)
		return true;
	return tls.context && tls.context->since >= b->begun && !listens_elsewhere() &&
	       __atomic_compare_exchange_n(&b->thread, &nobody, &tls, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static void take_stamp(struct vk_bell *b, volatile struct ring *rung)
{
	u64 place = rung->place;

	if (rung->proof != proof_of(place) || !is_listener(b))
		return;
	rung->place = 0;
	*(u64 *)place = vk_clock_monotonic();
}

static void hear(struct vk_bell *b)
{
	struct ring *rung;

	__atomic_add_fetch(&b->inside, 1, __ATOMIC_SEQ_CST);
	rung = __atomic_load_n(&b->rung, __ATOMIC_SEQ_CST);
	for (u32 i = 0; rung && i < RINGS; i++)
		if (rung[i].place)
			take_stamp(b, &rung[i]);
	__atomic_sub_fetch(&b->inside, 1, __ATOMIC_RELEASE);
}

void vk_bell_hear(void)
{
	for (u32 i = 0; i < BELLS; i++) {
		const void *thread = thread_of(&bells[i]);

		if (thread == &tls || (!thread && __atomic_load_n(&bells[i].rung, __ATOMIC_RELAXED)))
			hear(&bells[i]);
	}
}

/* ---- recording -------------------------------------------------------------------------------- */

/*
 * The queue's thread waits by itself for what computes, but not for what draws: `after` does. A place of the bell may be written
 * again when what was written there before is over; as stamps are numbered from 0, it takes one barrier for all of them.
 */
void vk_bell_record(const struct vk_device *d, VkCommandBuffer in, bool after, u32 number, const u64 *place)
{
	struct ring ring = { (u64)place, proof_of((u64)place) };
	u32 at = number % RINGS;

	if (after || at == 0)
		vk_barrier(d, in, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_ACCESS_TRANSFER_WRITE_BIT);
	d->fn.vkCmdUpdateBuffer(in, d->bell->buffer, at * sizeof ring, sizeof ring, &ring);
}

/* ---- the trial -------------------------------------------------------------------------------- */

enum { STAMP, COPY, AGAIN, TRIED };

/* A stamp; a copy of it, which shows that it was there by then; another one, by the same thread. */
static bool record_trial(const struct vk_device *d, VkCommandBuffer in, const struct vk_queries *q)
{
	VkCommandBufferBeginInfo begin = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO };
	VkBufferCopy copy = { STAMP * sizeof(u64), COPY * sizeof(u64), sizeof(u64) };

	if (d->fn.vkBeginCommandBuffer(in, &begin) != VK_SUCCESS)
		return false;
	vk_bell_record(d, in, false, STAMP, &q->at[STAMP]);
	d->fn.vkCmdCopyBuffer(in, q->buffer, q->buffer, 1, &copy);
	vk_bell_record(d, in, false, AGAIN, &q->at[AGAIN]);
	return d->fn.vkEndCommandBuffer(in) == VK_SUCCESS;
}

static bool is_heard(const struct vk_device *d, const volatile u64 *at)
{
	return at[STAMP] && at[COPY] == at[STAMP] && at[AGAIN] >= at[STAMP] && thread_of(d->bell) != &tls;
}

/* What a trial is made of. */
struct trial { struct vk_queries queries; VkCommandPool pool; VkCommandBuffer commands; VkFence fence; };

/* It is all that the queue has to do, and over in no time. */
static VkResult run_trial(const struct vk_device *d, const struct trial *t)
{
	VkSubmitInfo submit = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &t->commands };
	u64 end = vk_clock_monotonic() + trial_ns;
	VkQueue queue;
	VkResult r;

	d->fn.vkGetDeviceQueue(d->handle, d->lone_family, 0, &queue);
	r = d->fn.vkQueueSubmit(queue, 1, &submit, t->fence);
	if (r != VK_SUCCESS)
		return r;
	while ((r = d->fn.vkGetFenceStatus(d->handle, t->fence)) == VK_NOT_READY && vk_clock_monotonic() < end)
		sys(SYS_sched_yield, 0, 0, 0);
	return r;
}

static bool make_trial(struct vk_device *d, struct trial *t)
{
	VkCommandPoolCreateInfo pool = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .queueFamilyIndex = d->lone_family };
	VkFenceCreateInfo fence = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	VkCommandBufferAllocateInfo one = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY, .commandBufferCount = 1,
	};

	*t = (struct trial){ 0 };
	if (!vk_queries_make(d, TRIED, &t->queries))
		return false;
	for (u32 i = 0; i < TRIED; i++)
		t->queries.at[i] = 0;
	if (d->fn.vkCreateFence(d->handle, &fence, NULL, &t->fence) != VK_SUCCESS || d->fn.vkCreateCommandPool(d->handle, &pool, NULL, &t->pool) != VK_SUCCESS)
		return false;
	one.commandPool = t->pool;
	return d->fn.vkAllocateCommandBuffers(d->handle, &one, &t->commands) == VK_SUCCESS && record_trial(d, t->commands, &t->queries);
}

static void end_trial(struct vk_device *d, const struct trial *t)
{
	if (t->pool)
		d->fn.vkDestroyCommandPool(d->handle, t->pool, NULL);
	if (t->fence)
		d->fn.vkDestroyFence(d->handle, t->fence, NULL);
	if (vk_queries_key(&t->queries))
		vk_queries_free(d, &t->queries);
}

/* ---- start and end ---------------------------------------------------------------------------- */

static struct vk_bell *free_bell(void)
{
	for (u32 i = 0; i < BELLS; i++)
		if (!__atomic_exchange_n(&bells[i].taken, 1, __ATOMIC_ACQUIRE))
			return &bells[i];
	return NULL;
}

/* The queue's thread may be in our free() yet, while it cleans up behind the last submit. */
void vk_bell_silence(struct vk_device *d)
{
	struct vk_bell *b = d->bell;

	if (!b)
		return;
	__atomic_store_n(&b->rung, NULL, __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&b->inside, __ATOMIC_SEQ_CST))
		sys(SYS_sched_yield, 0, 0, 0);
	__atomic_sub_fetch(&guest.bells, 1, __ATOMIC_RELAXED);
}

void vk_bell_end(struct vk_device *d)
{
	struct vk_bell *b = d->bell;

	if (!b)
		return;
	vk_buffer_free(d, b->buffer, b->memory);
	d->bell = NULL;
	__atomic_store_n(&b->thread, NULL, __ATOMIC_RELAXED);
	__atomic_store_n(&b->taken, 0, __ATOMIC_RELEASE);
}

void vk_bell_forked(void)
{
	guest.bells = 0;
	for (u32 i = 0; i < BELLS; i++)
		bells[i] = (struct vk_bell){ 0 };
}

static bool hang(struct vk_device *d, struct vk_bell *b)
{
	void *at;

	if (!vk_buffer_make(d, RINGS * sizeof(struct ring), true, &b->buffer, &b->memory, &at))
		return false;
	d->bell = b;
	b->begun = d->begun;
	for (u32 i = 0; i < RINGS; i++)
		((struct ring *)at)[i] = (struct ring){ 0 };
	__atomic_add_fetch(&guest.bells, 1, __ATOMIC_RELAXED);
	__atomic_store_n(&b->rung, at, __ATOMIC_RELEASE);
	return true;
}

static void use_own_clock(struct vk_device *d)
{
	d->calibrated = true;
	d->period = 1;
	for (u32 i = 0; i < d->families; i++)
		d->family[i].bits = 64;
}

/* Nobody knows what becomes of what the driver did not get done: it is left as it is. */
static bool try_out(struct vk_device *d)
{
	struct trial t;
	VkResult r = make_trial(d, &t) ? run_trial(d, &t) : VK_ERROR_UNKNOWN;
	bool good = r == VK_SUCCESS && is_heard(d, t.queries.at);

	if (!good)
		vk_bell_silence(d);
	if (r == VK_NOT_READY)
		d->bell = NULL;
	else
		end_trial(d, &t);
	return good;
}

/* One queue: two threads would not know whose stamp a bell was rung for. */
static bool may_have_one(const struct vk_device *d)
{
	return d->synchronous && d->lone_family < d->families && d->family[d->lone_family].bits && guest.control->device_time != DEVICE_TIME_OFF;
}

void vk_bell_start(struct vk_device *d)
{
	struct vk_bell *b = may_have_one(d) ? free_bell() : NULL;

	if (!b)
		return;
	if (!hang(d, b))
		__atomic_store_n(&b->taken, 0, __ATOMIC_RELEASE);
	else if (try_out(d))
		use_own_clock(d);
	else
		vk_bell_end(d);
}
