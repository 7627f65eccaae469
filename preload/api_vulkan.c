/*
 * api_vulkan.c - the names of Vulkan that have wrappers, and the functions that give out functions.
 *
 * The real functions of a device come from the real vkGetDeviceProcAddr (vk_objects.c). What is remembered here is for
 * handles that are not known.
 */
#include "vk.h"
#include "bind.h"

struct vk_functions vk_real;
struct vk_instance_functions vk_real_instance;
PFN_vkCreateInstance vk_real_create_instance;
static PFN_vkGetInstanceProcAddr real_get, real_icd_get;
static PFN_vkGetDeviceProcAddr real_get_device;

static __typeof__(vkGetInstanceProcAddr) w_vkGetInstanceProcAddr, w_vk_icdGetInstanceProcAddr;
static __typeof__(vkGetDeviceProcAddr) w_vkGetDeviceProcAddr;

const struct entry vulkan_entries[] = {
	{ "vkGetInstanceProcAddr", w_vkGetInstanceProcAddr, (void **)&real_get },
	{ "vk_icdGetInstanceProcAddr", w_vk_icdGetInstanceProcAddr, (void **)&real_icd_get },
	{ "vkGetDeviceProcAddr", w_vkGetDeviceProcAddr, (void **)&real_get_device },
	{ "vkCreateInstance", w_vkCreateInstance, (void **)&vk_real_create_instance },
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

/* What the program gets for `name`, the real answer being `found`. */
static PFN_vkVoidFunction answer(const char *name, PFN_vkVoidFunction found, bool of_device)
{
	const struct entry *e = found && vk_wanted() ? vulkan_entry(name) : NULL;

	if (!e)
		return found;
	if (!of_device || !*e->real)            /* a device's own function serves that device only, but is better than none */
		bind_found(e, (void *)found);
	return (PFN_vkVoidFunction)e->wrapper;
}

static struct { PFN_vkCreateInstance create; PFN_vkGetInstanceProcAddr get; } last_given;

PFN_vkGetInstanceProcAddr vk_getter_of(PFN_vkCreateInstance create) { return last_given.create == create ? last_given.get : NULL; }

static PFN_vkVoidFunction ask(PFN_vkGetInstanceProcAddr get, VkInstance instance, const char *name)
{
	PFN_vkVoidFunction found = get(instance, name);

	if (!instance && found && text_equal(name, "vkCreateInstance")) {
		last_given.create = (PFN_vkCreateInstance)found;
		last_given.get = get;
	}
	return answer(name, found, false);
}

static PFN_vkVoidFunction w_vkGetInstanceProcAddr(VkInstance instance, const char *name)
{
	const struct vk_instance *i = vk_instance_of(instance);

	return ask(i ? i->get : real_get ? real_get : real_icd_get, instance, name);
}

static PFN_vkVoidFunction w_vk_icdGetInstanceProcAddr(VkInstance instance, const char *name)
{
	const struct vk_instance *i = vk_instance_of(instance);

	return ask(i ? i->get : real_icd_get, instance, name);
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

static PFN_vkVoidFunction w_vkGetDeviceProcAddr(VkDevice device, const char *name)
{
	const struct vk_device *d = vk_device_of(device);

	if (!d)
		return real_get_device(device, name);
	if (is_hidden(d, name))
		return NULL;
	return answer(name, d->instance->fn.vkGetDeviceProcAddr(device, name), true);
}
