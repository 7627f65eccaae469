/*
 * api_vulkan.c - the names of Vulkan that have wrappers, and the functions that give out functions.
 *
 * The real functions of a device come from the real vkGetDeviceProcAddr (vk_objects.c). What is remembered here is for
 * handles that are not known.
 */
#include "vk.h"
#include "bind.h"
#include "hook.h"

struct vk_functions vk_real;
struct vk_instance_functions vk_real_instance;
static PFN_vkGetDeviceProcAddr real_get_device;
static __typeof__(vkGetDeviceProcAddr) w_vkGetDeviceProcAddr;

/* ---- several loaders ------------------------------------------------------------------------- */

/*
 * A process may have two loaders, or a loader and a driver that it calls itself; before there is an instance, only the
 * function that is called tells which is meant. So these two have several wrappers, one for each real function.
 */
enum { LOADERS = 4 };

struct loader { PFN_vkGetInstanceProcAddr get; PFN_vkCreateInstance create; PFN_vkGetInstanceProcAddr create_get; };

static struct loader loader[LOADERS];

static PFN_vkVoidFunction get_from(u32 n, VkInstance instance, const char *name);

#define WRAPPERS(n)                                                                                                     \
	static PFN_vkVoidFunction get_##n(VkInstance instance, const char *name) { return get_from(n, instance, name); } \
	static VkResult create_##n(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *allocator, VkInstance *instance) \
	{                                                                                                               \
		return vk_create_instance(loader[n].create, loader[n].create_get, info, allocator, instance, CALLER()); \
	}
WRAPPERS(0) WRAPPERS(1) WRAPPERS(2) WRAPPERS(3)
#undef WRAPPERS

static const PFN_vkGetInstanceProcAddr get_wrapper[LOADERS] = { get_0, get_1, get_2, get_3 };
static const PFN_vkCreateInstance create_wrapper[LOADERS] = { create_0, create_1, create_2, create_3 };

static bool is_gone(const void *code)
{
	struct dl_find_object object;

	return !code || _dl_find_object((void *)code, &object) != 0;
}

/* A place for `real` in a column of the table: its own, a free one, one whose loader is gone, or the last. */
#define PLACE(column, real)                                                                                             \
	({                                                                                                              \
		u32 n_ = 0;                                                                                             \
		while (n_ < LOADERS && loader[n_].column != (real))                                                     \
			n_++;                                                                                           \
		for (u32 i_ = 0; i_ < LOADERS && n_ == LOADERS; i_++)                                                   \
			if (is_gone((const void *)loader[i_].column))                                                   \
				n_ = i_;                                                                                \
		n_ = n_ < LOADERS ? n_ : LOADERS - 1;                                                                   \
		loader[n_].column = (real);                                                                             \
		n_;                                                                                                     \
	})

static u32 places;      /* lock of the table, for a few instructions */

static void *pick_get(void *real)
{
	u32 n;

	spin_lock(&places);
	n = PLACE(get, (PFN_vkGetInstanceProcAddr)real);
	spin_unlock(&places);
	return (void *)get_wrapper[n];
}

static void *create_from(void *real, PFN_vkGetInstanceProcAddr get)
{
	u32 n;

	spin_lock(&places);
	n = PLACE(create, (PFN_vkCreateInstance)real);
	loader[n].create_get = get;
	spin_unlock(&places);
	return (void *)create_wrapper[n];
}

static void *pick_create(void *real) { return create_from(real, NULL); }

/* ---- the table ---------------------------------------------------------------------------------- */

const struct entry vulkan_entries[] = {
	{ "vkGetInstanceProcAddr", get_0, .pick = pick_get },
	{ "vk_icdGetInstanceProcAddr", get_0, .pick = pick_get },
	{ "vkCreateInstance", create_0, .pick = pick_create },
	{ "vkGetDeviceProcAddr", w_vkGetDeviceProcAddr, (void **)&real_get_device },
#define ROW(name) { #name, w_##name, (void **)&vk_real_instance.name },
	VK_INSTANCE_WRAPPED(ROW)
#undef ROW
	{ "vkEnumeratePhysicalDeviceGroupsKHR", w_vkEnumeratePhysicalDeviceGroups, (void **)&vk_real_instance.vkEnumeratePhysicalDeviceGroups },
#define ROW(name) { #name, w_##name, (void **)&vk_real.name },
	VK_WRAPPED(ROW)
#undef ROW
#define ROW(name, other) { #other, w_##name, (void **)&vk_real.name },
	VK_ALIASES(ROW)
#undef ROW
	{ 0 }
};

/* entry_find() knows all APIs. */
static const struct entry *vulkan_entry(const char *name)
{
	const struct entry *e = name && name[0] == 'v' && name[1] == 'k' ? entry_find(name) : NULL;

	return e >= vulkan_entries && e < vulkan_entries + sizeof vulkan_entries / sizeof *vulkan_entries ? e : NULL;
}

/* ---- the getters -------------------------------------------------------------------------------- */

static PFN_vkVoidFunction get_from(u32 n, VkInstance instance, const char *name)
{
	const struct vk_instance *i = vk_instance_of(instance);
	PFN_vkGetInstanceProcAddr get = i ? i->get : loader[n].get;
	PFN_vkVoidFunction found = get(instance, name);
	const struct entry *e = found && vk_wanted() ? vulkan_entry(name) : NULL;

	if (!e)
		return found;
	if (e->pick == pick_create)
		return (PFN_vkVoidFunction)create_from((void *)found, get);
	return (PFN_vkVoidFunction)bind_found(e, (void *)found);
}

/* A program may take a function that is there for a sign that the extension is. */
static bool is_hidden(const struct vk_device *d, const char *name)
{
	static const char *const timeline[] = { "vkGetSemaphoreCounterValueKHR", "vkWaitSemaphoresKHR", "vkSignalSemaphoreKHR" };

	for (u32 i = 0; d->hide_timeline && i < sizeof timeline / sizeof *timeline; i++)
		if (text_equal(name, timeline[i]))
			return true;
	return d->hide_calibrated && text_equal(name, "vkGetCalibratedTimestampsEXT");
}

/* A device's own function serves that device only, but for handles that are not known it is better than none. */
static PFN_vkVoidFunction w_vkGetDeviceProcAddr(VkDevice device, const char *name)
{
	const struct vk_device *d = vk_device_of(device);
	PFN_vkVoidFunction found;
	const struct entry *e;

	if (!d)
		return real_get_device(device, name);
	if (is_hidden(d, name))
		return NULL;
	found = d->instance->fn.vkGetDeviceProcAddr(device, name);
	e = found && vk_wanted() ? vulkan_entry(name) : NULL;
	if (e && e->real && !*e->real)
		bind_found(e, (void *)found);
	return e ? (PFN_vkVoidFunction)e->wrapper : found;
}
