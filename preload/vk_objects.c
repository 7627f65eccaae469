/*
 * vk_objects.c - instances, physical devices, devices and queues, by handle.
 */
#include "vk.h"
#include "elf_image.h"
#include "hook.h"

static struct handles instances, physicals, places, devices, queues, numbers;
static struct pool instance_pool = POOL(struct vk_instance), device_pool = POOL(struct vk_device), queue_pool = POOL(struct vk_queue);

struct vk_instance *vk_instance_of(VkInstance handle) { return handles_find(&instances, (u64)handle); }
struct vk_instance *vk_physical_instance(VkPhysicalDevice handle) { return handles_find(&physicals, (u64)handle); }
struct vk_device *vk_device_of(VkDevice handle) { return handles_find(&devices, (u64)handle); }
struct vk_queue *vk_queue_of(VkQueue handle) { return handles_find(&queues, (u64)handle); }

const void *vk_in_chain(const void *chain, VkStructureType type)
{
	for (const VkBaseInStructure *s = chain; s; s = s->pNext)
		if (s->sType == type)
			return s;
	return NULL;
}

/* ---- instances ---------------------------------------------------------------------------- */

/* The getter that belongs to a vkCreateInstance: what its own module exports, be it a loader or a driver. */
static PFN_vkGetInstanceProcAddr getter_beside(PFN_vkCreateInstance create)
{
	struct dl_find_object object;
	struct elf_image image;
	void *get = NULL;

	if (_dl_find_object((void *)create, &object) == 0 && elf_open(&image, object.dlfo_link_map)) {
		get = elf_symbol(&image, "vkGetInstanceProcAddr");
		if (!get)
			get = elf_symbol(&image, "vk_icdGetInstanceProcAddr");
	}
	return (PFN_vkGetInstanceProcAddr)get;
}

static void find_instance_functions(struct vk_instance *i)
{
#define FIND(name) i->fn.name = (PFN_##name)i->get(i->handle, #name);
	VK_INSTANCE_WRAPPED(FIND)
	VK_INSTANCE_USED(FIND)
#undef FIND
#define OTHER(name) if (!i->fn.name) i->fn.name = (PFN_##name)i->get(i->handle, #name "KHR");
	OTHER(vkEnumeratePhysicalDeviceGroups)
	OTHER(vkGetPhysicalDeviceFeatures2)
	OTHER(vkGetPhysicalDeviceProperties2)
#undef OTHER
}

static bool names_extension(const VkInstanceCreateInfo *info, const char *name)
{
	for (u32 k = 0; k < info->enabledExtensionCount; k++)
		if (text_equal(info->ppEnabledExtensionNames[k], name))
			return true;
	return false;
}

static void instance_known(VkInstance handle, const VkInstanceCreateInfo *info, PFN_vkGetInstanceProcAddr get)
{
	struct vk_instance *i = pool_get(&instance_pool);

	if (!i)
		return;
	i->handle = handle;
	i->get = get;
	i->version = info->pApplicationInfo && info->pApplicationInfo->apiVersion ? info->pApplicationInfo->apiVersion : VK_API_VERSION_1_0;
	i->properties2 = i->version >= VK_API_VERSION_1_1 || names_extension(info, VK_KHR_GET_PHYSICAL_DEVICE_PROPERTIES_2_EXTENSION_NAME);
	if (i->get)
		find_instance_functions(i);
	if (!i->get || !i->fn.vkGetDeviceProcAddr || !i->fn.vkCreateDevice || !handles_put(&instances, (u64)handle, i))
		pool_put(&instance_pool, i);
}

VkResult vk_create_instance(PFN_vkCreateInstance create, PFN_vkGetInstanceProcAddr get, const VkInstanceCreateInfo *info,
			    const VkAllocationCallbacks *allocator, VkInstance *instance, struct caller at)
{
	u64 begin = api_enter();
	VkResult r = create(info, allocator, instance);

	if (r == VK_SUCCESS && vk_wanted())
		instance_known(*instance, info, get ? get : getter_beside(create));
	vk_call_note(begin, CALL_OTHER, NAMED("vkCreateInstance"), r, NULL, at);
	api_leave();
	return r;
}

static void forget_physical(u64 key, void *value, void *instance)
{
	if (value == instance)
		handles_remove(&physicals, key);
}

void w_vkDestroyInstance(VkInstance instance, const VkAllocationCallbacks *allocator)
{
	struct vk_instance *i = vk_instance_of(instance);
	PFN_vkDestroyInstance destroy = i ? i->fn.vkDestroyInstance : vk_real_instance.vkDestroyInstance;

	if (i) {
		handles_each(&physicals, forget_physical, i);
		handles_remove(&instances, (u64)instance);
		pool_put(&instance_pool, i);
	}
	destroy(instance, allocator);
}

static u64 kind_of(const VkPhysicalDeviceProperties *p)
{
	return text_hash(p->deviceName, text_length(p->deviceName)) ^ text_hash((const char *)p->pipelineCacheUUID, VK_UUID_SIZE) << 1;
}

/* What came before in a list of physical devices. */
struct kinds { u32 count; u64 kind[16]; };

/*
 * Which of its kind it is, is told by its place: instances of any version list devices in one order, while their handles differ
 * and only newer ones can ask for a UUID.
 */
static void physical_known(struct vk_instance *i, VkPhysicalDevice physical, struct kinds *before)
{
	VkPhysicalDeviceProperties p;
	u64 kind, place = 1;

	i->fn.vkGetPhysicalDeviceProperties(physical, &p);
	kind = kind_of(&p);
	for (u32 k = 0; k < before->count; k++)
		place += before->kind[k] == kind;
	if (before->count < sizeof before->kind / sizeof *before->kind)
		before->kind[before->count++] = kind;
	handles_put(&places, (u64)physical, (void *)place);
	handles_put(&physicals, (u64)physical, i);
}

VkResult w_vkEnumeratePhysicalDevices(VkInstance instance, uint32_t *count, VkPhysicalDevice *list)
{
	struct vk_instance *i = vk_instance_of(instance);
	VkResult r = (i ? i->fn.vkEnumeratePhysicalDevices : vk_real_instance.vkEnumeratePhysicalDevices)(instance, count, list);
	struct kinds before = { 0 };

	for (u32 k = 0; i && list && r >= 0 && k < *count; k++)
		physical_known(i, list[k], &before);
	return r;
}

VkResult w_vkEnumeratePhysicalDeviceGroups(VkInstance instance, uint32_t *count, VkPhysicalDeviceGroupProperties *list)
{
	struct vk_instance *i = vk_instance_of(instance);
	VkResult r = (i ? i->fn.vkEnumeratePhysicalDeviceGroups : vk_real_instance.vkEnumeratePhysicalDeviceGroups)(instance, count, list);
	struct kinds before = { 0 };

	for (u32 k = 0; i && list && r >= 0 && k < *count; k++)
		for (u32 p = 0; p < list[k].physicalDeviceCount; p++)
			physical_known(i, list[k].physicalDevices[p], &before);
	return r;
}

/* ---- devices ------------------------------------------------------------------------------- */

/* All zero where it cannot be asked for. */
static VkPhysicalDeviceDriverProperties driver_of(const struct vk_device *d)
{
	const struct vk_instance *i = d->instance;
	VkPhysicalDeviceDriverProperties driver = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES };
	VkPhysicalDeviceProperties2 all = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &driver };

	if (i->fn.vkGetPhysicalDeviceProperties2 &&
	    (d->version >= VK_API_VERSION_1_2 || (i->properties2 && vk_offers(i, d->physical, VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME))))
		i->fn.vkGetPhysicalDeviceProperties2(d->physical, &all);
	return driver;
}

/*
 * A physical device keeps its number however often the program makes instances and devices of it. So what is said of the clock is said of
 * all of them; of those whose stamps the driver takes although we took others', the clock is the same: llvmpipe's is the host's.
 */
static void tell_device(struct vk_device *d, const VkPhysicalDeviceProperties *p, const VkPhysicalDeviceDriverProperties *driver)
{
	u64 kind = kind_of(p), key = kind ^ process_born() ^ (u64)handles_find(&places, (u64)d->physical), number = device_number();
	char text[VK_MAX_DRIVER_NAME_SIZE + VK_MAX_DRIVER_INFO_SIZE];

	d->number = (u64)handles_add(&numbers, key, (void *)number);
	if (d->number != number)
		return;
	text_join(text, sizeof text, driver->driverName, *driver->driverName ? " " : "");
	text_append(text, sizeof text, driver->driverInfo);
	device_note(&(struct rec_device){ d->number, d->cpu ? DEVICE_CPU | DEVICE_HOST_MEMORY : DEVICE_GPU,
					  d->bell ? DEVICE_CLOCK_HOST : d->calibrated ? DEVICE_CLOCK_CALIBRATED : DEVICE_CLOCK_NONE }, "Vulkan", p->deviceName, text);
}

static void find_functions(struct vk_device *d)
{
	PFN_vkGetDeviceProcAddr get = d->instance->fn.vkGetDeviceProcAddr;

#define FIND(name) d->fn.name = (PFN_##name)get(d->handle, #name);
	VK_WRAPPED(FIND)
	VK_USED(FIND)
#undef FIND
#define OTHER(name, other) if (!d->fn.name) d->fn.name = (PFN_##name)get(d->handle, #other);
	VK_ALIASES(OTHER)
	OTHER(vkGetCalibratedTimestampsEXT, vkGetCalibratedTimestampsKHR)
#undef OTHER
}

static void look_at_families(struct vk_device *d)
{
	VkQueueFamilyProperties list[VK_FAMILIES];

	d->families = VK_FAMILIES;
	d->instance->fn.vkGetPhysicalDeviceQueueFamilyProperties(d->physical, &d->families, list);
	for (u32 i = 0; i < d->families; i++)
		d->family[i] = (struct vk_family){ list[i].queueFlags, list[i].timestampValidBits };
}

/* Not from a handler that a signal brought in the middle of a call: the driver's locks may be held. */
static void at_exit(int status, void *unused)
{
	(void)status, (void)unused;
	if (!tls.api_depth)
		vk_drain_all();
}

/* Registered when the driver has been loaded, so that it runs before the driver's own end. */
static void drain_at_exit(void)
{
	static u32 done;
	u64 guard = tls.guard;

	if (__atomic_exchange_n(&done, 1, __ATOMIC_RELAXED))
		return;
	tls.guard = FRAME();                    /* what libc allocates for it is not the program's */
	on_exit(at_exit, NULL);
	tls.guard = guard;
}

/* handle, instance, physical and what was switched on are set. */
void vk_device_known(struct vk_device *set)
{
	struct vk_device *d = pool_get(&device_pool);
	VkPhysicalDeviceDriverProperties driver;
	VkPhysicalDeviceProperties p;

	if (!d)
		return;
	*d = *set;
	d->instance->fn.vkGetPhysicalDeviceProperties(d->physical, &p);
	d->instance->fn.vkGetPhysicalDeviceMemoryProperties(d->physical, &d->memory);
	d->version = p.apiVersion < d->instance->version ? p.apiVersion : d->instance->version;
	d->period = p.limits.timestampPeriod;
	d->cpu = p.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
	find_functions(d);
	look_at_families(d);
	d->calibrated = d->calibrated && d->fn.vkGetCalibratedTimestampsEXT;
	d->timeline = d->timeline && d->fn.vkGetSemaphoreCounterValue;
	driver = driver_of(d);
	d->synchronous = d->cpu && driver.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;       /* its queue's thread waits for those that compute */
	vk_bell_start(d);
	tell_device(d, &p, &driver);
	d->born = process_born();
	d->salt = (device_number() * 0x9e3779b97f4a7c15ull) << 1;
	if (!handles_put(&devices, (u64)d->handle, d)) {
		pool_put(&device_pool, d);
		return;
	}
	vk_clock_read(d, true);
	drain_at_exit();
}

/* What the program left undone is done by now, or it may not destroy the device. */
static void release(struct vk_device *d)
{
	bool pending = false, lost;

	vk_drain(d, ticks());
	for (const struct vk_queue *q = d->queues; q; q = q->next)
		pending |= q->pending != NULL;
	lost = pending && d->fn.vkDeviceWaitIdle(d->handle) < 0;
	vk_drain(d, ticks());
	vk_clock_read(d, true);
	vk_bell_silence(d);
	for (struct vk_queue *q = d->queues, *next; q; q = next) {
		next = q->next;
		if (lost)
			vk_drain_failed(q);
		vk_ring_release(q);
		handles_remove(&queues, (u64)q->handle);
		pool_put(&queue_pool, q);
	}
	vk_pools_release(d);
	vk_stamps_free(d);
	vk_bell_end(d);
}

enum { PATIENCE_MS = 1000 };

/* A thread that exits may be at it right now: either it does not find it any more, or we see it there. */
static void forget(struct vk_device *d)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	const void *drainer;

	if (!d)
		return;
	handles_remove(&devices, (u64)d->handle);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (int ms = 0; ms < PATIENCE_MS && (drainer = __atomic_load_n(&d->drainer, __ATOMIC_ACQUIRE)) && drainer != &tls; ms++)
		sys(SYS_nanosleep, &nap, 0, 0);
}

void w_vkDestroyDevice(VkDevice device, const VkAllocationCallbacks *allocator)
{
	struct vk_device *d = vk_device_of(device);
	PFN_vkDestroyDevice destroy = VK_CALL(d, vkDestroyDevice);
	u64 begin = api_enter();

	forget(d);
	if (vk_ours(d)) {
		release(d);
		pool_put(&device_pool, d);
	}
	destroy(device, allocator);
	vk_call_note(begin, CALL_OTHER, NAMED("vkDestroyDevice"), 0, NULL, CALLER());
	api_leave();
}

/* ---- queues -------------------------------------------------------------------------------- */

static const char *family_word(VkQueueFlags flags)
{
	return flags & VK_QUEUE_GRAPHICS_BIT ? "graphics" : flags & VK_QUEUE_COMPUTE_BIT ? "compute" :
	       flags & VK_QUEUE_TRANSFER_BIT ? "transfer" : "other";
}

static void tell_queue(const struct vk_queue *q, u32 index)
{
	char name[64] = "queue ";

	text_number(name, sizeof name, q->family, 10);
	text_append(name, sizeof name, "/");
	text_number(name, sizeof name, index, 10);
	text_append(name, sizeof name, " (");
	text_append(name, sizeof name, family_word(q->device->family[q->family].flags));
	text_append(name, sizeof name, ")");
	queue_note(&(struct rec_queue){ q->number, q->device->number, q->stamps ? 0 : QUEUE_UNTIMED }, name);
}

static struct vk_queue *queue_made(struct vk_device *d, VkQueue handle, u32 family, u32 index, bool protect)
{
	struct vk_queue *q = pool_get(&queue_pool);

	if (!q)
		return NULL;
	q->handle = handle;
	q->device = d;
	q->family = family;
	q->number = device_number();
	q->stamps = !protect && d->family[family].bits && d->family[family].flags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT) &&
		    guest.control->device_time != DEVICE_TIME_OFF;
	q->pending_end = &q->pending;
	tell_queue(q, index);
	return q;
}

static bool is_known(const struct vk_device *d, VkQueue handle)
{
	const struct vk_queue *q = handles_find(&queues, (u64)handle);

	return q && q->device == d;
}

/* Several threads may ask for it at once, each to use it when it comes back: it is one queue, and known by then. */
static void queue_known(struct vk_device *d, VkQueue handle, u32 family, u32 index, bool protect)
{
	static u32 lock;
	struct vk_queue *q;

	if (!handle || family >= d->families || !vk_ours(d) || is_known(d, handle))
		return;
	spin_lock(&lock);
	q = is_known(d, handle) ? NULL : queue_made(d, handle, family, index, protect);
	if (q) {
		q->next = d->queues;
		__atomic_store_n(&d->queues, q, __ATOMIC_RELEASE);
		handles_put(&queues, (u64)handle, q);
	}
	spin_unlock(&lock);
}

void w_vkGetDeviceQueue(VkDevice device, uint32_t family, uint32_t index, VkQueue *queue)
{
	struct vk_device *d = vk_device_of(device);

	VK_CALL(d, vkGetDeviceQueue)(device, family, index, queue);
	if (d)
		queue_known(d, *queue, family, index, false);
}

void w_vkGetDeviceQueue2(VkDevice device, const VkDeviceQueueInfo2 *info, VkQueue *queue)
{
	struct vk_device *d = vk_device_of(device);

	VK_CALL(d, vkGetDeviceQueue2)(device, info, queue);
	if (d)
		queue_known(d, *queue, info->queueFamilyIndex, info->queueIndex, info->flags & VK_DEVICE_QUEUE_CREATE_PROTECTED_BIT);
}

/* ---- the end -------------------------------------------------------------------------------- */

static void drain_last(u64 key, void *value, void *unused)
{
	struct vk_device *d = value;
	struct dl_find_object object;

	(void)unused;
	if (!vk_ours(d))
		return;
	__atomic_store_n(&d->drainer, &tls, __ATOMIC_RELEASE);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);                /* see forget() */
	if (handles_find(&devices, key) == d && !_dl_find_object((void *)d->fn.vkGetFenceStatus, &object)) {   /* its driver may have been unloaded under it */
		vk_drain(d, ticks());
		vk_clock_read(d, true);
	}
	__atomic_store_n(&d->drainer, NULL, __ATOMIC_RELEASE);
}

void vk_drain_all(void)
{
	if (vk_wanted())
		handles_each(&devices, drain_last, NULL);
}
