// cc: -shared -fPIC
/*
 * sleepy_layer.c - a Vulkan layer whose vkWaitSemaphores sleeps while it waits for any of several.
 *
 * lavapipe looks at them again and again instead, and IREE keeps a thread in that call all the time: on a machine of two CPUs it takes
 * one away from the device, natively and under every profiler, and how long anything takes is chance. Drivers of real devices sleep.
 */
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <vulkan/vulkan.h>
#include <vulkan/vk_layer.h>

#define EXPORT __attribute__((visibility("default")))

enum { LOOK_NS = 100000 };

static PFN_vkGetInstanceProcAddr next_instance;
static PFN_vkGetDeviceProcAddr next_device;
static PFN_vkWaitSemaphores next_wait;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* One after the other, each for a while: waiting for one is what lavapipe sleeps in. */
static VkResult wait_any(VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout)
{
	uint64_t begin = now_ns(), left = timeout;
	VkResult got = next_wait(device, info, 0);

	for (uint32_t i = 0; got == VK_TIMEOUT && left; i = (i + 1) % info->semaphoreCount) {
		VkSemaphoreWaitInfo one = *info;
		uint64_t spent;

		one.semaphoreCount = 1;
		one.pSemaphores += i;
		one.pValues += i;
		got = next_wait(device, &one, left < LOOK_NS ? left : LOOK_NS);
		spent = now_ns() - begin;
		left = spent < timeout ? timeout - spent : 0;
	}
	return got;
}

static VKAPI_ATTR VkResult VKAPI_CALL wait(VkDevice device, const VkSemaphoreWaitInfo *info, uint64_t timeout)
{
	bool any = info->flags & VK_SEMAPHORE_WAIT_ANY_BIT && info->semaphoreCount > 1;

	return any ? wait_any(device, info, timeout) : next_wait(device, info, timeout);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo *info, const VkAllocationCallbacks *memory, VkInstance *instance)
{
	VkLayerInstanceCreateInfo *link = (void *)info->pNext;

	while (link && (link->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO || link->function != VK_LAYER_LINK_INFO))
		link = (void *)link->pNext;
	if (!link)
		return VK_ERROR_INITIALIZATION_FAILED;
	next_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
	link->u.pLayerInfo = link->u.pLayerInfo->pNext;
	return ((PFN_vkCreateInstance)next_instance(NULL, "vkCreateInstance"))(info, memory, instance);
}

static VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical, const VkDeviceCreateInfo *info,
						    const VkAllocationCallbacks *memory, VkDevice *device)
{
	VkLayerDeviceCreateInfo *link = (void *)info->pNext;
	PFN_vkCreateDevice create;
	VkResult got;

	while (link && (link->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO || link->function != VK_LAYER_LINK_INFO))
		link = (void *)link->pNext;
	if (!link)
		return VK_ERROR_INITIALIZATION_FAILED;
	next_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
	create = (PFN_vkCreateDevice)link->u.pLayerInfo->pfnNextGetInstanceProcAddr(NULL, "vkCreateDevice");
	link->u.pLayerInfo = link->u.pLayerInfo->pNext;
	got = create(physical, info, memory, device);
	if (got == VK_SUCCESS)
		next_wait = (PFN_vkWaitSemaphores)next_device(*device, "vkWaitSemaphores");
	return got;
}

static const struct { const char *name; PFN_vkVoidFunction function; } table[] = {
	{ "vkCreateInstance", (PFN_vkVoidFunction)create_instance },
	{ "vkCreateDevice", (PFN_vkVoidFunction)create_device },
	{ "vkWaitSemaphores", (PFN_vkVoidFunction)wait },
	{ "vkWaitSemaphoresKHR", (PFN_vkVoidFunction)wait },
};

static PFN_vkVoidFunction own(const char *name)
{
	for (size_t i = 0; i < sizeof table / sizeof *table; i++)
		if (!strcmp(table[i].name, name))
			return table[i].function;
	return NULL;
}

EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetDeviceProcAddr(VkDevice device, const char *name)
{
	PFN_vkVoidFunction f = own(name);

	return f ? f : next_device(device, name);
}

EXPORT VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance, const char *name)
{
	PFN_vkVoidFunction f = own(name);

	if (!strcmp(name, "vkGetDeviceProcAddr"))
		return (PFN_vkVoidFunction)vkGetDeviceProcAddr;
	return f || !instance ? f : next_instance(instance, name);
}
