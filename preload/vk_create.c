/*
 * vk_create.c - vkCreateDevice: timeline semaphores and VK_EXT_calibrated_timestamps are switched on for our own use.
 *
 * The program's structures are not written to: they may be constant. What must be changed is copied, with all that leads
 * to it; a chain that holds something of unknown size before it is left alone. If the driver does not like what we made of
 * it, it gets the program's own.
 */
#include "vk.h"
#include <string.h>

enum { EXTENSIONS = 512, COPIES = 16, COPY_BYTES = 512 };

struct request {
	VkDeviceCreateInfo info;
	VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
	const char *extension[EXTENSIONS + 2];
	u64 copy[COPIES][COPY_BYTES / 8];
};

/* ---- chains -------------------------------------------------------------------------------- */

#define KNOWN(X)                                                                                                        \
	X(FEATURES_2, Features2) X(VULKAN_1_1_FEATURES, Vulkan11Features) X(VULKAN_1_2_FEATURES, Vulkan12Features)      \
	X(VULKAN_1_3_FEATURES, Vulkan13Features) X(TIMELINE_SEMAPHORE_FEATURES, TimelineSemaphoreFeatures)              \
	X(8BIT_STORAGE_FEATURES, 8BitStorageFeatures) X(16BIT_STORAGE_FEATURES, 16BitStorageFeatures)                   \
	X(SHADER_FLOAT16_INT8_FEATURES, ShaderFloat16Int8Features) X(HOST_QUERY_RESET_FEATURES, HostQueryResetFeatures) \
	X(BUFFER_DEVICE_ADDRESS_FEATURES, BufferDeviceAddressFeatures)                                                  \
	X(VULKAN_MEMORY_MODEL_FEATURES, VulkanMemoryModelFeatures)                                                      \
	X(SUBGROUP_SIZE_CONTROL_FEATURES, SubgroupSizeControlFeatures)                                                  \
	X(SCALAR_BLOCK_LAYOUT_FEATURES, ScalarBlockLayoutFeatures)                                                      \
	X(DESCRIPTOR_INDEXING_FEATURES, DescriptorIndexingFeatures)                                                     \
	X(SYNCHRONIZATION_2_FEATURES, Synchronization2Features) X(MAINTENANCE_4_FEATURES, Maintenance4Features)         \
	X(DYNAMIC_RENDERING_FEATURES, DynamicRenderingFeatures) X(VARIABLE_POINTERS_FEATURES, VariablePointersFeatures) \
	X(SHADER_INTEGER_DOT_PRODUCT_FEATURES, ShaderIntegerDotProductFeatures)                                         \
	X(SHADER_ATOMIC_INT64_FEATURES, ShaderAtomicInt64Features) X(MULTIVIEW_FEATURES, MultiviewFeatures)             \
	X(IMAGELESS_FRAMEBUFFER_FEATURES, ImagelessFramebufferFeatures)                                                 \
	X(UNIFORM_BUFFER_STANDARD_LAYOUT_FEATURES, UniformBufferStandardLayoutFeatures)                                 \
	X(SHADER_SUBGROUP_EXTENDED_TYPES_FEATURES, ShaderSubgroupExtendedTypesFeatures)                                 \
	X(SEPARATE_DEPTH_STENCIL_LAYOUTS_FEATURES, SeparateDepthStencilLayoutsFeatures)                                 \
	X(SAMPLER_YCBCR_CONVERSION_FEATURES, SamplerYcbcrConversionFeatures)                                            \
	X(SHADER_DRAW_PARAMETERS_FEATURES, ShaderDrawParametersFeatures)                                                \
	X(PROTECTED_MEMORY_FEATURES, ProtectedMemoryFeatures) X(INLINE_UNIFORM_BLOCK_FEATURES, InlineUniformBlockFeatures) \
	X(IMAGE_ROBUSTNESS_FEATURES, ImageRobustnessFeatures) X(PRIVATE_DATA_FEATURES, PrivateDataFeatures)             \
	X(ROBUSTNESS_2_FEATURES_EXT, Robustness2FeaturesEXT)                                                            \
	X(COOPERATIVE_MATRIX_FEATURES_NV, CooperativeMatrixFeaturesNV)                                                  \
	X(PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR, PipelineExecutablePropertiesFeaturesKHR)                         \
	X(SHADER_ATOMIC_FLOAT_FEATURES_EXT, ShaderAtomicFloatFeaturesEXT)                                               \
	X(MEMORY_PRIORITY_FEATURES_EXT, MemoryPriorityFeaturesEXT)                                                      \
	X(PAGEABLE_DEVICE_LOCAL_MEMORY_FEATURES_EXT, PageableDeviceLocalMemoryFeaturesEXT)

static const struct { VkStructureType type; u32 bytes; } sizes[] = {
#define ROW(type, name) { VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##type, sizeof(VkPhysicalDevice##name) },
	KNOWN(ROW)
#undef ROW
	{ VK_STRUCTURE_TYPE_DEVICE_GROUP_DEVICE_CREATE_INFO, sizeof(VkDeviceGroupDeviceCreateInfo) },
	{ VK_STRUCTURE_TYPE_DEVICE_PRIVATE_DATA_CREATE_INFO, sizeof(VkDevicePrivateDataCreateInfo) },
};

static u32 size_of(VkStructureType type)
{
	for (u32 i = 0; i < sizeof sizes / sizeof *sizes; i++)
		if (sizes[i].type == type)
			return sizes[i].bytes <= COPY_BYTES ? sizes[i].bytes : 0;
	return 0;
}

/* A copy of the chain up to `last`, which is a struct of ours to change; NULL if it cannot be made. */
static void *copy_up_to(struct request *q, const void *last)
{
	const VkBaseInStructure *from = q->info.pNext;
	VkBaseOutStructure *before = NULL;

	for (u32 n = 0; n < COPIES && from; n++, from = from->pNext) {
		VkBaseOutStructure *copy = (void *)q->copy[n];
		u32 bytes = size_of(from->sType);

		if (!bytes)
			break;
		memcpy(copy, from, bytes);
		if (before)
			before->pNext = copy;
		else
			q->info.pNext = copy;
		before = copy;
		if ((const void *)from == last)
			return copy;
	}
	return NULL;
}

static bool switch_on(struct request *q, const void *found, size_t offset)
{
	const void *before = q->info.pNext;
	char *copy;

	if (*(const VkBool32 *)((const char *)found + offset))
		return true;
	copy = copy_up_to(q, found);
	if (!copy) {
		q->info.pNext = before;
		return false;
	}
	*(VkBool32 *)(copy + offset) = VK_TRUE;
	return true;
}

/* ---- what to ask for ------------------------------------------------------------------------ */

static bool asked_for(const VkDeviceCreateInfo *info, const char *name)
{
	for (u32 i = 0; i < info->enabledExtensionCount; i++)
		if (text_equal(info->ppEnabledExtensionNames[i], name))
			return true;
	return false;
}

bool vk_offers(const struct vk_instance *i, VkPhysicalDevice physical, const char *name)
{
	static const size_t room = EXTENSIONS * sizeof(VkExtensionProperties);
	VkExtensionProperties *list = sys_memory(room);
	u32 count = EXTENSIONS;
	bool found = false;

	if (!list)
		return false;
	if (i->fn.vkEnumerateDeviceExtensionProperties(physical, NULL, &count, list) >= 0)
		for (u32 k = 0; k < count && !found; k++)
			found = text_equal(list[k].extensionName, name);
	sys_munmap(list, room);
	return found;
}

static bool extend(struct request *q, const struct vk_instance *i, VkPhysicalDevice physical, const char *name)
{
	if (asked_for(&q->info, name))
		return true;
	if (!i->properties2 || q->info.enabledExtensionCount >= EXTENSIONS || !vk_offers(i, physical, name))
		return false;
	if (q->info.ppEnabledExtensionNames != q->extension)
		for (u32 k = 0; k < q->info.enabledExtensionCount; k++)
			q->extension[k] = q->info.ppEnabledExtensionNames[k];
	q->extension[q->info.enabledExtensionCount++] = name;
	q->info.ppEnabledExtensionNames = q->extension;
	return true;
}

static bool has_timeline(const struct vk_instance *i, VkPhysicalDevice physical)
{
	VkPhysicalDeviceTimelineSemaphoreFeatures timeline = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES };
	VkPhysicalDeviceFeatures2 all = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &timeline };

	if (!i->properties2 || !i->fn.vkGetPhysicalDeviceFeatures2)
		return false;
	i->fn.vkGetPhysicalDeviceFeatures2(physical, &all);
	return timeline.timelineSemaphore;
}

static bool want_timeline(struct request *q, const struct vk_instance *i, VkPhysicalDevice physical, u32 version)
{
	const void *found;

	if (!has_timeline(i, physical))
		return false;
	if (version < VK_API_VERSION_1_2 && !extend(q, i, physical, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME))
		return false;
	found = vk_in_chain(q->info.pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
	if (found)
		return switch_on(q, found, offsetof(VkPhysicalDeviceVulkan12Features, timelineSemaphore));
	found = vk_in_chain(q->info.pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);
	if (found)
		return switch_on(q, found, offsetof(VkPhysicalDeviceTimelineSemaphoreFeatures, timelineSemaphore));
	q->timeline = (VkPhysicalDeviceTimelineSemaphoreFeatures){
		VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES, (void *)q->info.pNext, VK_TRUE
	};
	q->info.pNext = &q->timeline;
	return true;
}

static bool want_calibrated(struct request *q, const struct vk_instance *i, VkPhysicalDevice physical)
{
	return asked_for(&q->info, "VK_KHR_calibrated_timestamps") || extend(q, i, physical, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
}

static bool has_domains(const struct vk_instance *i, VkPhysicalDevice physical, bool *monotonic)
{
	VkTimeDomainEXT domains[16];
	u32 count = 16;
	bool device = false;

	*monotonic = false;
	if (!i->fn.vkGetPhysicalDeviceCalibrateableTimeDomainsEXT ||
	    i->fn.vkGetPhysicalDeviceCalibrateableTimeDomainsEXT(physical, &count, domains) < 0)
		return false;
	for (u32 k = 0; k < count; k++) {
		device |= domains[k] == VK_TIME_DOMAIN_DEVICE_EXT;
		*monotonic |= domains[k] == VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
	}
	return device;
}

static u32 version_of(const struct vk_instance *i, VkPhysicalDevice physical)
{
	VkPhysicalDeviceProperties p;

	i->fn.vkGetPhysicalDeviceProperties(physical, &p);
	return p.apiVersion < i->version ? p.apiVersion : i->version;
}

/* What the program itself switched on, for when it gets just that. */
static bool own_timeline(const VkDeviceCreateInfo *info)
{
	const VkPhysicalDeviceVulkan12Features *all = vk_in_chain(info->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES);
	const VkPhysicalDeviceTimelineSemaphoreFeatures *one =
		vk_in_chain(info->pNext, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES);

	return (all && all->timelineSemaphore) || (one && one->timelineSemaphore);
}

static u32 lone_family(const VkDeviceCreateInfo *info)
{
	const VkDeviceQueueCreateInfo *q = info->pQueueCreateInfos;

	return info->queueCreateInfoCount == 1 && q->queueCount == 1 && !q->flags ? q->queueFamilyIndex : ~0u;
}

static VkResult create(struct vk_device *d, struct request *q, const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator)
{
	PFN_vkCreateDevice real = d->instance->fn.vkCreateDevice;
	VkResult r;

	q->info = *info;
	d->lone_family = lone_family(info);
	d->timeline = want_timeline(q, d->instance, d->physical, version_of(d->instance, d->physical));
	d->calibrated = guest.control->device_time != DEVICE_TIME_OFF && want_calibrated(q, d->instance, d->physical) &&
			has_domains(d->instance, d->physical, &d->monotonic);
	d->hide_timeline = !asked_for(info, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME) && asked_for(&q->info, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
	d->hide_calibrated = !asked_for(info, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME) &&
			     asked_for(&q->info, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
	r = real(d->physical, &q->info, allocator, &d->handle);
	if (r == VK_SUCCESS || (q->info.pNext == info->pNext && q->info.enabledExtensionCount == info->enabledExtensionCount))
		return r;
	d->timeline = own_timeline(info);
	d->calibrated &= asked_for(info, VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME) || asked_for(info, "VK_KHR_calibrated_timestamps");
	return real(d->physical, info, allocator, &d->handle);
}

VkResult w_vkCreateDevice(VkPhysicalDevice physical, const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator, VkDevice *device)
{
	struct vk_instance *i = vk_physical_instance(physical);
	struct request *q = i && vk_wanted() ? sys_memory(sizeof *q) : NULL;
	struct vk_device d = { .instance = i, .physical = physical, .begun = ticks() };
	u64 begin;
	VkResult r;

	if (!q)
		return (i ? i->fn.vkCreateDevice : vk_real_instance.vkCreateDevice)(physical, info, allocator, device);
	begin = api_enter();
	r = create(&d, q, info, allocator);
	if (r == VK_SUCCESS) {
		*device = d.handle;
		vk_device_known(&d);
	}
	sys_munmap(q, sizeof *q);
	vk_call_note(begin, CALL_OTHER, NAMED("vkCreateDevice"), r, NULL, CALLER());
	api_leave();
	return r;
}
