/*
 * vk_client.h - a small Vulkan client: one device, one queue, one storage buffer, one pipeline.
 *
 * The functions come in one of three ways, so that each way into the API is tried:
 *   (nothing)      linked
 *   -DBY_DLSYM     dlopen, and dlsym for each
 *   -DBY_GETTER    dlopen, dlsym for vkGetInstanceProcAddr, the rest from it and from vkGetDeviceProcAddr
 *   -DVISIBLE      with variables of the functions' names that other modules can see, as some wrappers have
 */
#ifndef VK_CLIENT_H
#define VK_CLIENT_H

#if defined(BY_DLSYM) || defined(BY_GETTER)
#define VK_NO_PROTOTYPES
#endif
#include "expect.h"
#include "vk_scale.h"           /* made from vk_scale.comp */
#include <dlfcn.h>
#include <vulkan/vulkan.h>

#define GLOBAL(X) X(vkCreateInstance) X(vkEnumerateInstanceVersion)
#define OF_INSTANCE(X)                                                                                                  \
	X(vkDestroyInstance) X(vkEnumeratePhysicalDevices) X(vkCreateDevice) X(vkGetPhysicalDeviceProperties)           \
	X(vkGetPhysicalDeviceMemoryProperties) X(vkGetPhysicalDeviceFeatures) X(vkGetPhysicalDeviceFormatProperties)    \
	X(vkGetPhysicalDeviceQueueFamilyProperties) X(vkGetDeviceProcAddr)
#define OF_DEVICE(X)                                                                                                    \
	X(vkDestroyDevice) X(vkGetDeviceQueue) X(vkQueueSubmit) X(vkQueueWaitIdle) X(vkDeviceWaitIdle)                  \
	X(vkCreateFence) X(vkDestroyFence) X(vkResetFences) X(vkWaitForFences) X(vkGetFenceStatus)                      \
	X(vkCreateSemaphore) X(vkDestroySemaphore)                                                                      \
	X(vkCreateCommandPool) X(vkDestroyCommandPool) X(vkResetCommandPool) X(vkAllocateCommandBuffers)                \
	X(vkFreeCommandBuffers) X(vkBeginCommandBuffer) X(vkEndCommandBuffer) X(vkResetCommandBuffer)                   \
	X(vkCmdBindPipeline) X(vkCmdBindDescriptorSets) X(vkCmdPushConstants) X(vkCmdDispatch)                          \
	X(vkCmdDispatchIndirect) X(vkCmdCopyBuffer) X(vkCmdFillBuffer) X(vkCmdUpdateBuffer) X(vkCmdPipelineBarrier)     \
	X(vkCmdExecuteCommands) X(vkCmdResetQueryPool) X(vkCmdWriteTimestamp) X(vkGetQueryPoolResults)                  \
	X(vkCreateQueryPool) X(vkDestroyQueryPool) X(vkCreateShaderModule) X(vkDestroyShaderModule)                     \
	X(vkCreateComputePipelines) X(vkDestroyPipeline) X(vkCreatePipelineLayout) X(vkDestroyPipelineLayout)           \
	X(vkCreateDescriptorSetLayout) X(vkDestroyDescriptorSetLayout) X(vkCreateDescriptorPool)                        \
	X(vkDestroyDescriptorPool) X(vkAllocateDescriptorSets) X(vkUpdateDescriptorSets) X(vkFreeDescriptorSets)        \
	X(vkResetDescriptorPool)                                                                                        \
	X(vkCreateBuffer) X(vkDestroyBuffer) X(vkGetBufferMemoryRequirements) X(vkAllocateMemory) X(vkFreeMemory)       \
	X(vkBindBufferMemory) X(vkMapMemory) X(vkUnmapMemory) X(vkCreateImage) X(vkDestroyImage)                        \
	X(vkGetImageMemoryRequirements) X(vkBindImageMemory) X(vkCmdClearColorImage) X(vkCmdCopyImage) X(vkCmdBlitImage)   \
	X(vkCmdClearDepthStencilImage)                                                                                  \
	X(vkCmdCopyBufferToImage) X(vkCmdCopyImageToBuffer) X(vkCmdResolveImage)

/* Of later versions: they may not be there. */
#define OF_LATER(X)                                                                                                     \
	X(vkCmdCopyImage2) X(vkCmdBlitImage2) X(vkCmdResolveImage2) X(vkCmdCopyBufferToImage2) X(vkCmdCopyImageToBuffer2) \
	X(vkCreateDescriptorUpdateTemplate) X(vkDestroyDescriptorUpdateTemplate) X(vkUpdateDescriptorSetWithTemplate)   \
	X(vkCmdDispatchBase) X(vkCmdBeginRendering) X(vkCmdEndRendering) X(vkQueueSubmit2) X(vkCmdCopyBuffer2) X(vkBindBufferMemory2) X(vkBindImageMemory2) X(vkGetSemaphoreCounterValue)

#if defined(BY_DLSYM) || defined(BY_GETTER)
#ifdef VISIBLE          /* and variables that have the functions' names are there for all to see */
#define VARIABLE(name) PFN_##name name;
#else
#define VARIABLE(name) static PFN_##name name;
#endif
GLOBAL(VARIABLE) OF_INSTANCE(VARIABLE) OF_DEVICE(VARIABLE) OF_LATER(VARIABLE)
#undef VARIABLE
static PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
#endif

__attribute__((unused)) static void *client_library;   /* may be set before */

static void functions_start(void)
{
#if defined(BY_DLSYM) || defined(BY_GETTER)
	const char *driver = getenv("VK_CLIENT_DRIVER");         /* straight to it, without a loader */
	void *library = client_library ? client_library : dlopen(driver ? driver : "libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		exit(77);
	client_library = library;
	vkGetInstanceProcAddr = (PFN_vkGetInstanceProcAddr)dlsym(library, driver ? "vk_icdGetInstanceProcAddr" : "vkGetInstanceProcAddr");
#ifdef BY_DLSYM
#define FIND(name) name = (PFN_##name)dlsym(library, #name);
	GLOBAL(FIND) OF_INSTANCE(FIND) OF_DEVICE(FIND) OF_LATER(FIND)
#else
#define FIND(name) name = (PFN_##name)vkGetInstanceProcAddr(NULL, #name);
	GLOBAL(FIND)
#endif
#undef FIND
#endif
}

static void functions_of_instance(VkInstance instance)
{
	(void)instance;
#ifdef BY_GETTER
#define FIND(name) name = (PFN_##name)vkGetInstanceProcAddr(instance, #name);
	OF_INSTANCE(FIND)
#undef FIND
#endif
}

static void functions_of_device(VkDevice device)
{
	(void)device;
#ifdef BY_GETTER
#define FIND(name) name = (PFN_##name)vkGetDeviceProcAddr(device, #name);
	OF_DEVICE(FIND) OF_LATER(FIND)
#undef FIND
#endif
}

static void good(VkResult r, const char *what)
{
	if (r == VK_SUCCESS)
		return;
	say("%s failed: %d\n", what, r);
	_exit(99);
}

#define GOOD(call) good(call, #call)

struct client {
	VkInstance instance;
	VkPhysicalDevice physical;
	VkDevice device;
	VkQueue queue;
	VkCommandPool pool;
	VkDescriptorSetLayout set_layout;
	VkPipelineLayout layout;
	VkDescriptorPool sets;
	VkDescriptorSet set;
	VkShaderModule module;
	VkPipeline pipeline;
	VkBuffer buffer;
	VkDeviceMemory memory;
	uint32_t *data;
	uint32_t count;
	float period;
	uint32_t version;
	const char *extension[4];       /* of the device, up to the first NULL */
};

struct push { uint32_t factor, offset, count; };

static void client_instance(struct client *c, const char *const *extensions, uint32_t extension_count)
{
	VkApplicationInfo app = { .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO, .apiVersion = c->version };
	VkInstanceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO, .pApplicationInfo = &app, .enabledExtensionCount = extension_count,
		.ppEnabledExtensionNames = extensions,
	};
	uint32_t one = 1;
	VkResult r;

	functions_start();
	GOOD(vkCreateInstance(&info, NULL, &c->instance));
	functions_of_instance(c->instance);
	r = vkEnumeratePhysicalDevices(c->instance, &one, &c->physical);
	if (r < 0 || !one)
		exit(77);
}

static void client_device(struct client *c, const void *features)
{
	float priority = 1;
	VkDeviceQueueCreateInfo queue = { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority };
	VkDeviceCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO, .pNext = features, .queueCreateInfoCount = 1, .pQueueCreateInfos = &queue,
		.ppEnabledExtensionNames = c->extension,
	};
	VkCommandPoolCreateInfo pool = { .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO, .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT };
	VkPhysicalDeviceProperties properties;

	while (info.enabledExtensionCount < 4 && c->extension[info.enabledExtensionCount])
		info.enabledExtensionCount++;
	vkGetPhysicalDeviceProperties(c->physical, &properties);
	c->period = properties.limits.timestampPeriod;
	GOOD(vkCreateDevice(c->physical, &info, NULL, &c->device));
	functions_of_device(c->device);
	vkGetDeviceQueue(c->device, 0, 0, &c->queue);
	GOOD(vkCreateCommandPool(c->device, &pool, NULL, &c->pool));
}

static uint32_t host_type(struct client *c, uint32_t allowed)
{
	VkPhysicalDeviceMemoryProperties all;
	VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

	vkGetPhysicalDeviceMemoryProperties(c->physical, &all);
	for (uint32_t i = 0; i < all.memoryTypeCount; i++)
		if (allowed & 1u << i && (all.memoryTypes[i].propertyFlags & wanted) == wanted)
			return i;
	exit(77);
}

static VkBuffer client_buffer(struct client *c, uint64_t bytes)
{
	VkBufferCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = bytes,
		.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT |
			 VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT,
	};
	VkBuffer buffer;

	GOOD(vkCreateBuffer(c->device, &info, NULL, &buffer));
	return buffer;
}

static VkDeviceMemory client_memory(struct client *c, uint64_t bytes, uint32_t allowed)
{
	VkMemoryAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = bytes, .memoryTypeIndex = host_type(c, allowed) };
	VkDeviceMemory memory;

	GOOD(vkAllocateMemory(c->device, &info, NULL, &memory));
	return memory;
}

static void client_data(struct client *c, uint32_t count)
{
	VkMemoryRequirements need;

	c->count = count;
	c->buffer = client_buffer(c, count * 4ull);
	vkGetBufferMemoryRequirements(c->device, c->buffer, &need);
	c->memory = client_memory(c, need.size, need.memoryTypeBits);
	GOOD(vkBindBufferMemory(c->device, c->buffer, c->memory, 0));
	GOOD(vkMapMemory(c->device, c->memory, 0, VK_WHOLE_SIZE, 0, (void **)&c->data));
	for (uint32_t i = 0; i < count; i++)
		c->data[i] = i;
}

static void client_layout(struct client *c)
{
	VkDescriptorSetLayoutBinding binding = {
		.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = 1, .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
	};
	VkDescriptorSetLayoutCreateInfo set = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 1, .pBindings = &binding };
	VkPushConstantRange range = { VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(struct push) };
	VkPipelineLayoutCreateInfo layout = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO, .setLayoutCount = 1, .pSetLayouts = &c->set_layout,
		.pushConstantRangeCount = 1, .pPushConstantRanges = &range,
	};
	VkDescriptorPoolSize size = { VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1 };
	VkDescriptorPoolCreateInfo pool = {
		.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &size,
	};
	VkDescriptorSetAllocateInfo take = { .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO, .descriptorSetCount = 1 };
	VkDescriptorBufferInfo buffer = { c->buffer, 0, VK_WHOLE_SIZE };
	VkWriteDescriptorSet write = {
		.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET, .descriptorCount = 1, .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
		.pBufferInfo = &buffer,
	};

	GOOD(vkCreateDescriptorSetLayout(c->device, &set, NULL, &c->set_layout));
	GOOD(vkCreatePipelineLayout(c->device, &layout, NULL, &c->layout));
	GOOD(vkCreateDescriptorPool(c->device, &pool, NULL, &c->sets));
	take.descriptorPool = c->sets;
	take.pSetLayouts = &c->set_layout;
	GOOD(vkAllocateDescriptorSets(c->device, &take, &c->set));
	write.dstSet = c->set;
	vkUpdateDescriptorSets(c->device, 1, &write, 0, NULL);
}

static VkShaderModule client_module(struct client *c, const uint32_t *code, size_t bytes)
{
	VkShaderModuleCreateInfo info = { .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO, .codeSize = bytes, .pCode = code };
	VkShaderModule module;

	GOOD(vkCreateShaderModule(c->device, &info, NULL, &module));
	return module;
}

/* local: the group's size; rounds: how long each item works */
static VkPipeline client_pipeline(struct client *c, VkShaderModule module, const char *entry, uint32_t local, uint32_t rounds)
{
	uint32_t values[2] = { local, rounds };
	VkSpecializationMapEntry map[2] = { { 7, 0, 4 }, { 9, 4, 4 } };
	VkSpecializationInfo special = { 2, map, sizeof values, values };
	VkComputePipelineCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
		.stage = { .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_COMPUTE_BIT, .module = module,
			   .pName = entry, .pSpecializationInfo = &special },
		.layout = c->layout,
	};
	VkPipeline pipeline;

	GOOD(vkCreateComputePipelines(c->device, VK_NULL_HANDLE, 1, &info, NULL, &pipeline));
	return pipeline;
}

/* All of the above, as most programs need it. */
static void client_start(struct client *c, uint32_t count, uint32_t rounds)
{
	client_instance(c, NULL, 0);
	client_device(c, NULL);
	client_data(c, count);
	client_layout(c);
	c->module = client_module(c, vk_scale, sizeof vk_scale);
	c->pipeline = client_pipeline(c, c->module, "main", 64, rounds);
}

static VkCommandBuffer client_commands(struct client *c, VkCommandBufferLevel level)
{
	VkCommandBufferAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO, .commandPool = c->pool, .level = level, .commandBufferCount = 1,
	};
	VkCommandBuffer commands;

	GOOD(vkAllocateCommandBuffers(c->device, &info, &commands));
	return commands;
}

static void client_begin(VkCommandBuffer b, VkCommandBufferUsageFlags flags, int secondary)
{
	VkCommandBufferInheritanceInfo inherit = { .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_INHERITANCE_INFO };
	VkCommandBufferBeginInfo info = {
		.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO, .flags = flags, .pInheritanceInfo = secondary ? &inherit : NULL,
	};

	GOOD(vkBeginCommandBuffer(b, &info));
}

static void client_bind(struct client *c, VkCommandBuffer b, uint32_t factor, uint32_t offset)
{
	struct push push = { factor, offset, c->count };

	vkCmdBindPipeline(b, VK_PIPELINE_BIND_POINT_COMPUTE, c->pipeline);
	vkCmdBindDescriptorSets(b, VK_PIPELINE_BIND_POINT_COMPUTE, c->layout, 0, 1, &c->set, 0, NULL);
	vkCmdPushConstants(b, c->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof push, &push);
}

static void client_barrier(VkCommandBuffer b)
{
	VkPipelineStageFlags all = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT | VK_PIPELINE_STAGE_DRAW_INDIRECT_BIT;
	VkMemoryBarrier memory = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER, .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
		.dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_READ_BIT |
				 VK_ACCESS_TRANSFER_WRITE_BIT | VK_ACCESS_INDIRECT_COMMAND_READ_BIT,
	};

	vkCmdPipelineBarrier(b, all, all, 0, 1, &memory, 0, NULL, 0, NULL);
}

static void client_submit(struct client *c, VkCommandBuffer b, VkFence fence)
{
	VkSubmitInfo info = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 1, .pCommandBuffers = &b };

	GOOD(vkQueueSubmit(c->queue, 1, &info, fence));
}

/* A dispatch of so many groups, from its recording to its end. */
static void client_dispatch(struct client *c, uint32_t groups)
{
	VkCommandBuffer b = client_commands(c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);

	client_begin(b, 0, 0);
	client_bind(c, b, 3, 1);
	vkCmdDispatch(b, groups, 1, 1);
	GOOD(vkEndCommandBuffer(b));
	client_submit(c, b, VK_NULL_HANDLE);
	GOOD(vkDeviceWaitIdle(c->device));
}

static void client_end(struct client *c)
{
	vkDestroyPipeline(c->device, c->pipeline, NULL);
	vkDestroyShaderModule(c->device, c->module, NULL);
	vkDestroyDescriptorPool(c->device, c->sets, NULL);
	vkDestroyPipelineLayout(c->device, c->layout, NULL);
	vkDestroyDescriptorSetLayout(c->device, c->set_layout, NULL);
	vkDestroyCommandPool(c->device, c->pool, NULL);
	vkDestroyBuffer(c->device, c->buffer, NULL);
	vkFreeMemory(c->device, c->memory, NULL);
	vkDestroyDevice(c->device, NULL);
	vkDestroyInstance(c->instance, NULL);
}

static uint64_t client_sum(const struct client *c)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < c->count; i++)
		sum = sum * 31 + c->data[i];
	return sum;
}

#endif
