// cc: -shared -fPIC -ldl
/*
 * vk_shim.c - a Vulkan driver that is lavapipe but for one thing: what no driver here does can be tried with it.
 *
 *   SHIM=untimed    its queues have no stamps            SHIM=lost     the device is lost at the 5th submit
 *   SHIM=transfer   its queues can only copy             SHIM=refuse   the 5th submit fails for want of memory
 *   SHIM=wrap       stamps have 32 bits                  SHIM=queries  query pools cannot be made
 *   SHIM=features   devices with more than was asked for SHIM=busy     nothing is ever seen to be done
 *                   cannot be made                     SHIM=format   takes VK_FORMAT_R10X6_UNORM_PACK16 for one of its own
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define EXPORT __attribute__((visibility("default")))

static PFN_vkGetInstanceProcAddr next;
static PFN_vkGetDeviceProcAddr next_device;
static PFN_vkGetPhysicalDeviceQueueFamilyProperties families;
static PFN_vkQueueSubmit submit;
static PFN_vkCreateDevice create;
static PFN_vkCreateImage create_image;
static int submits;

static int is(const char *mode)
{
	const char *now = getenv("SHIM");

	return now && !strcmp(now, mode);
}

static void my_families(VkPhysicalDevice p, uint32_t *count, VkQueueFamilyProperties *list)
{
	families(p, count, list);
	for (uint32_t i = 0; list && i < *count; i++) {
		if (is("untimed"))
			list[i].timestampValidBits = 0;
		if (is("wrap"))
			list[i].timestampValidBits = 32;
		if (is("transfer"))
			list[i].queueFlags = VK_QUEUE_TRANSFER_BIT;
	}
}

static VkResult my_submit(VkQueue q, uint32_t count, const VkSubmitInfo *infos, VkFence fence)
{
	if (count && ++submits >= 5 && is("lost"))
		return VK_ERROR_DEVICE_LOST;
	if (count && submits == 5 && is("refuse"))
		return VK_ERROR_OUT_OF_DEVICE_MEMORY;
	return submit(q, count, infos, fence);
}

static VkResult my_create(VkPhysicalDevice p, const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator, VkDevice *device)
{
	if (is("features") && (info->pNext || info->enabledExtensionCount))
		return VK_ERROR_FEATURE_NOT_PRESENT;
	return create(p, info, allocator, device);
}

static VkResult my_query_pool(VkDevice d, const VkQueryPoolCreateInfo *info, const VkAllocationCallbacks *allocator, VkQueryPool *pool)
{
	(void)d, (void)info, (void)allocator, (void)pool;
	return VK_ERROR_OUT_OF_DEVICE_MEMORY;
}

static VkResult my_counter(VkDevice d, VkSemaphore s, uint64_t *value)
{
	(void)d, (void)s;
	*value = 0;
	return VK_SUCCESS;
}

static VkResult my_image(VkDevice d, const VkImageCreateInfo *info, const VkAllocationCallbacks *allocator, VkImage *image)
{
	VkImageCreateInfo other = *info;

	if (info->format == VK_FORMAT_R10X6_UNORM_PACK16)
		other.format = VK_FORMAT_R16_UNORM;
	return create_image(d, &other, allocator, image);
}

static PFN_vkVoidFunction my_get_device(VkDevice device, const char *name)
{
	PFN_vkVoidFunction found = next_device(device, name);

	if (!strcmp(name, "vkQueueSubmit") && found) {
		submit = (PFN_vkQueueSubmit)found;
		return (PFN_vkVoidFunction)my_submit;
	}
	if (!strcmp(name, "vkCreateImage") && found && is("format")) {
		create_image = (PFN_vkCreateImage)found;
		return (PFN_vkVoidFunction)my_image;
	}
	if (!strcmp(name, "vkCreateQueryPool") && is("queries"))
		return (PFN_vkVoidFunction)my_query_pool;
	if (!strcmp(name, "vkGetSemaphoreCounterValue") && is("busy"))
		return (PFN_vkVoidFunction)my_counter;
	return found;
}

EXPORT PFN_vkVoidFunction vk_icdGetInstanceProcAddr(VkInstance instance, const char *name)
{
	PFN_vkVoidFunction found;

	if (!next)
		next = (PFN_vkGetInstanceProcAddr)dlsym(dlopen(getenv("SHIM_DRIVER"), RTLD_NOW | RTLD_LOCAL), "vk_icdGetInstanceProcAddr");
	found = next(instance, name);
#define REPLACE(function, own, mine)                                                                                    \
	if (found && !strcmp(name, #function)) {                                                                        \
		own = (PFN_##function)found;                                                                            \
		return (PFN_vkVoidFunction)mine;                                                                        \
	}
	REPLACE(vkGetPhysicalDeviceQueueFamilyProperties, families, my_families)
	REPLACE(vkCreateDevice, create, my_create)
	REPLACE(vkGetDeviceProcAddr, next_device, my_get_device)
	return found;
}

/* A loader would look for this; so it is plain that we are a driver. */
EXPORT VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
	*version = 5;
	return VK_SUCCESS;
}
