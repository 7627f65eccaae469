// cc: -shared -fPIC -ldl -pthread
/*
 * vk_shim.c - a Vulkan driver that is lavapipe but for one thing: what no driver here does can be tried with it.
 *
 *   untimed    its queues have no stamps                      lost       the device is lost at the 5th submit
 *   transfer   its queues can only copy                       lost_fence, lost_idle  ... at the 3rd wait of that kind
 *   wrap       stamps have 30 bits: a second                  refuse     the 5th submit fails for want of memory
 *   features   no devices with more than was asked for        memory     only the first vkAllocateMemory succeeds
 *   busy       its timeline semaphores never move             queries    query pools cannot be made
 *   format     takes VK_FORMAT_R10X6_UNORM_PACK16 for one of its own
 *   queues     has four families with five queues             rays       has ray tracing: compute shaders do it
 *   slow       the main thread has a timeline semaphore's value after 200 ms only; a device that is destroyed meanwhile stops the program
 *   deaf       updates of 16 bytes are not done, which is how mlprof tries out whether it can take the stamps itself
 *
 * The environment's SHIM is one of these. All but the last are cards: nobody shall think that he knows how llvmpipe does it. A program that uses a queue for what it cannot do is stopped. At the end it is
 * told how often it waited: who adds waits of his own is found out.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

#define EXPORT __attribute__((visibility("default")))

static PFN_vkGetInstanceProcAddr next;
static PFN_vkGetDeviceProcAddr next_device;
static PFN_vkGetPhysicalDeviceQueueFamilyProperties families;
static PFN_vkCreateDevice create;
static PFN_vkGetPhysicalDeviceProperties2 properties;
static int submits, allocations, lost, waits_of_kind, waits, asking;

/* The driver's own functions of the device, where they are replaced. */
#define REPLACED(X)                                                                                                     \
	X(vkQueueSubmit) X(vkQueueSubmit2) X(vkQueueWaitIdle) X(vkGetDeviceQueue) X(vkCreateCommandPool)                \
	X(vkAllocateCommandBuffers) X(vkCmdResetQueryPool) X(vkCmdWriteTimestamp) X(vkCmdCopyQueryPoolResults)          \
	X(vkCmdDispatch) X(vkCreateQueryPool) X(vkGetSemaphoreCounterValue) X(vkCreateImage) X(vkAllocateMemory)        \
	X(vkWaitForFences) X(vkDeviceWaitIdle) X(vkDestroyDevice) X(vkGetFenceStatus) X(vkWaitSemaphores)               \
	X(vkGetQueryPoolResults) X(vkCmdBindPipeline) X(vkCreateComputePipelines) X(vkCmdFillBuffer)      \
	X(vkCmdUpdateBuffer)
#define MEMBER(name) PFN_##name name;
static struct { REPLACED(MEMBER) } own;

static int is(const char *mode)
{
	const char *now = getenv("SHIM");

	return now && !strcmp(now, mode);
}

/* ---- queues ----------------------------------------------------------------------------------------- */

static const struct { VkQueueFlags flags; uint32_t queues, bits; } family[] = {
	{ VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 2, 64 },
	{ VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, 1, 36 },
	{ VK_QUEUE_TRANSFER_BIT, 1, 64 },
	{ VK_QUEUE_COMPUTE_BIT, 1, 0 },
};

enum { FAMILIES = sizeof family / sizeof *family, TABLE = 4096 };

static struct queue { VkQueue real; uint32_t family; } queue[FAMILIES][2];
static struct { const void *handle; uint32_t family; } known[TABLE];    /* command pools and buffers */
static unsigned known_count;
static pthread_mutex_t one_queue = PTHREAD_MUTEX_INITIALIZER;           /* there is but one */

static VkQueue real_queue(VkQueue q) { return is("queues") ? ((struct queue *)q)->real : q; }

static void know(const void *handle, uint32_t f)
{
	pthread_mutex_lock(&one_queue);
	if (known_count == TABLE)
		abort();
	known[known_count].handle = handle;
	known[known_count++].family = f;
	pthread_mutex_unlock(&one_queue);
}

static uint32_t family_of(const void *handle)
{
	uint32_t found = 0;

	pthread_mutex_lock(&one_queue);
	for (unsigned i = 0; i < known_count; i++)
		if (known[i].handle == handle)          /* the latest: handles come again */
			found = known[i].family;
	pthread_mutex_unlock(&one_queue);
	return found;
}

static void must(int can, const char *what)
{
	if (can)
		return;
	fprintf(stderr, "vk_shim: %s on a queue that cannot\n", what);
	abort();
}

static int computes(VkCommandBuffer b)
{
	return !is("queues") || family[family_of(b)].flags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT);
}

static int stamps(VkCommandBuffer b) { return !is("untimed") && (!is("queues") || family[family_of(b)].bits); }

static void my_vkGetDeviceQueue(VkDevice d, uint32_t f, uint32_t index, VkQueue *to)
{
	own.vkGetDeviceQueue(d, is("queues") ? 0 : f, is("queues") ? 0 : index, to);
	if (!is("queues"))
		return;
	queue[f][index] = (struct queue){ *to, f };
	*to = (VkQueue)&queue[f][index];
}

static VkResult my_vkCreateCommandPool(VkDevice d, const VkCommandPoolCreateInfo *info, const VkAllocationCallbacks *allocator, VkCommandPool *pool)
{
	VkCommandPoolCreateInfo other = *info;
	VkResult r;

	if (is("queues"))
		other.queueFamilyIndex = 0;
	r = own.vkCreateCommandPool(d, &other, allocator, pool);
	if (r == VK_SUCCESS)
		know(*pool, info->queueFamilyIndex);
	return r;
}

static VkResult my_vkAllocateCommandBuffers(VkDevice d, const VkCommandBufferAllocateInfo *info, VkCommandBuffer *list)
{
	VkResult r = own.vkAllocateCommandBuffers(d, info, list);

	for (uint32_t i = 0; r == VK_SUCCESS && i < info->commandBufferCount; i++)
		know(list[i], family_of(info->commandPool));
	return r;
}

static void my_vkCmdResetQueryPool(VkCommandBuffer b, VkQueryPool pool, uint32_t first, uint32_t count)
{
	must(computes(b) && !is("transfer"), "vkCmdResetQueryPool");
	own.vkCmdResetQueryPool(b, pool, first, count);
}

static void my_vkCmdCopyQueryPoolResults(VkCommandBuffer b, VkQueryPool pool, uint32_t first, uint32_t count, VkBuffer to, VkDeviceSize offset,
					 VkDeviceSize stride, VkQueryResultFlags flags)
{
	must(computes(b) && !is("transfer"), "vkCmdCopyQueryPoolResults");
	own.vkCmdCopyQueryPoolResults(b, pool, first, count, to, offset, stride, flags);
}

static void my_vkCmdWriteTimestamp(VkCommandBuffer b, VkPipelineStageFlagBits stage, VkQueryPool pool, uint32_t query)
{
	must(stamps(b), "vkCmdWriteTimestamp");
	own.vkCmdWriteTimestamp(b, stage, pool, query);
}

static void my_vkCmdDispatch(VkCommandBuffer b, uint32_t x, uint32_t y, uint32_t z)
{
	must(computes(b), "vkCmdDispatch");
	own.vkCmdDispatch(b, x, y, z);
}

/* ---- submits and waits ---------------------------------------------------------------------------------- */

/* r, or that the device is lost, from the 3rd such wait on. */
static VkResult waited(VkResult r, const char *mode)
{
	waits++;
	lost |= is(mode) && ++waits_of_kind >= 3;
	return lost ? VK_ERROR_DEVICE_LOST : r;
}

static VkResult my_vkQueueWaitIdle(VkQueue q) { return waited(own.vkQueueWaitIdle(real_queue(q)), "lost_idle"); }
static VkResult my_vkDeviceWaitIdle(VkDevice d) { return waited(lost ? 0 : own.vkDeviceWaitIdle(d), "none"); }
static VkResult my_vkGetFenceStatus(VkDevice d, VkFence f) { return lost ? VK_ERROR_DEVICE_LOST : own.vkGetFenceStatus(d, f); }

static VkResult my_vkWaitForFences(VkDevice d, uint32_t count, const VkFence *list, VkBool32 all, uint64_t timeout)
{
	return waited(own.vkWaitForFences(d, count, list, all, timeout), "lost_fence");
}

static VkResult my_vkWaitSemaphores(VkDevice d, const VkSemaphoreWaitInfo *info, uint64_t timeout)
{
	return waited(own.vkWaitSemaphores(d, info, timeout), "none");
}

/* Some drivers wait for the whole device here. */
static VkResult my_vkGetQueryPoolResults(VkDevice d, VkQueryPool pool, uint32_t first, uint32_t count, size_t size, void *to, VkDeviceSize stride,
					 VkQueryResultFlags flags)
{
	return waited(own.vkGetQueryPoolResults(d, pool, first, count, size, to, stride, flags), "none");
}

static void my_vkDestroyDevice(VkDevice d, const VkAllocationCallbacks *allocator)
{
	dprintf(1, "waited %d times\n", waits);
	if (asking)
		abort();
	own.vkDeviceWaitIdle(d);                        /* it goes on working, however lost */
	own.vkDestroyDevice(d, allocator);
}

static VkResult my_vkQueueSubmit2(VkQueue q, uint32_t count, const VkSubmitInfo2 *infos, VkFence fence)
{
	VkResult r;

	pthread_mutex_lock(&one_queue);
	r = own.vkQueueSubmit2(real_queue(q), count, infos, fence);
	pthread_mutex_unlock(&one_queue);
	return r;
}

static VkResult my_vkQueueSubmit(VkQueue q, uint32_t count, const VkSubmitInfo *infos, VkFence fence)
{
	VkResult r;

	if (is("wrap"))
		usleep(150000);
	lost |= count && ++submits >= 5 && is("lost");
	if (lost)
		return VK_ERROR_DEVICE_LOST;
	if (count && submits == 5 && is("refuse"))
		return VK_ERROR_OUT_OF_DEVICE_MEMORY;
	pthread_mutex_lock(&one_queue);
	r = own.vkQueueSubmit(real_queue(q), count, infos, fence);
	pthread_mutex_unlock(&one_queue);
	return r;
}

static void my_families(VkPhysicalDevice p, uint32_t *count, VkQueueFamilyProperties *list)
{
	uint32_t room = *count, one = 1;

	if (!is("queues")) {
		families(p, count, list);
		for (uint32_t i = 0; list && i < *count; i++) {
			if (is("untimed") || is("wrap"))
				list[i].timestampValidBits = is("wrap") ? 30 : 0;
			if (is("transfer"))
				list[i].queueFlags = VK_QUEUE_TRANSFER_BIT;
		}
		return;
	}
	*count = list && room < FAMILIES ? room : FAMILIES;
	for (uint32_t i = 0; list && i < *count; i++) {
		families(p, &one, &list[i]);
		list[i].queueFlags = family[i].flags;
		list[i].queueCount = family[i].queues;
		list[i].timestampValidBits = family[i].bits;
	}
}

static void my_properties(VkPhysicalDevice p, VkPhysicalDeviceProperties2 *to)
{
	properties(p, to);
	for (VkBaseOutStructure *s = to->pNext; s; s = s->pNext)
		if (s->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES && !is("") && !is("deaf"))
			((VkPhysicalDeviceDriverProperties *)s)->driverID = VK_DRIVER_ID_MESA_TURNIP;
}

/* ---- devices ------------------------------------------------------------------------------------------- */

static VkResult my_create(VkPhysicalDevice p, const VkDeviceCreateInfo *info, const VkAllocationCallbacks *allocator, VkDevice *device)
{
	static const float priority = 1;
	VkDeviceQueueCreateInfo one = { .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO, .queueCount = 1, .pQueuePriorities = &priority };
	VkDeviceCreateInfo other = *info;

	if (is("features") && (info->pNext || info->enabledExtensionCount))
		return VK_ERROR_FEATURE_NOT_PRESENT;
	if (is("queues")) {
		other.queueCreateInfoCount = 1;
		other.pQueueCreateInfos = &one;
	}
	return create(p, &other, allocator, device);
}

static VkResult my_vkCreateQueryPool(VkDevice d, const VkQueryPoolCreateInfo *info, const VkAllocationCallbacks *allocator, VkQueryPool *pool)
{
	return is("queries") ? VK_ERROR_OUT_OF_DEVICE_MEMORY : own.vkCreateQueryPool(d, info, allocator, pool);
}

static VkResult my_vkGetSemaphoreCounterValue(VkDevice d, VkSemaphore s, uint64_t *value)
{
	*value = 0;
	if (is("slow") && gettid() == getpid()) {
		asking = 1;
		usleep(200000);
		asking = 0;
	}
	return lost ? VK_ERROR_DEVICE_LOST : is("busy") ? VK_SUCCESS : own.vkGetSemaphoreCounterValue(d, s, value);
}

static VkResult my_vkAllocateMemory(VkDevice d, const VkMemoryAllocateInfo *info, const VkAllocationCallbacks *allocator, VkDeviceMemory *memory)
{
	return is("memory") && allocations++ ? VK_ERROR_OUT_OF_DEVICE_MEMORY : own.vkAllocateMemory(d, info, allocator, memory);
}

static VkResult my_vkCreateImage(VkDevice d, const VkImageCreateInfo *info, const VkAllocationCallbacks *allocator, VkImage *image)
{
	VkImageCreateInfo other = *info;

	if (is("format") && info->format == VK_FORMAT_R10X6_UNORM_PACK16)
		other.format = VK_FORMAT_R16_UNORM;
	return own.vkCreateImage(d, &other, allocator, image);
}

static void my_vkCmdUpdateBuffer(VkCommandBuffer b, VkBuffer to, VkDeviceSize offset, VkDeviceSize size, const void *data)
{
	if (!is("deaf") || size != 16)
		own.vkCmdUpdateBuffer(b, to, offset, size, data);
}

/* ---- rays -------------------------------------------------------------------------------------------------- */

/* A pipeline that traces rays is one that computes what its first stage says. */
static VkResult my_vkCreateComputePipelines(VkDevice d, VkPipelineCache cache, uint32_t count, const VkComputePipelineCreateInfo *infos,
					    const VkAllocationCallbacks *allocator, VkPipeline *list)
{
	return own.vkCreateComputePipelines(d, cache, count, infos, allocator, list);
}

static VkResult my_vkCreateRayTracingPipelinesKHR(VkDevice d, VkDeferredOperationKHR later, VkPipelineCache cache, uint32_t count,
						  const VkRayTracingPipelineCreateInfoKHR *infos, const VkAllocationCallbacks *allocator,
						  VkPipeline *list)
{
	VkResult r = VK_SUCCESS;

	(void)later;
	for (uint32_t i = 0; i < count && r == VK_SUCCESS; i++) {
		VkComputePipelineCreateInfo info = { .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO, .stage = infos[i].pStages[0], .layout = infos[i].layout };

		info.stage.stage = VK_SHADER_STAGE_COMPUTE_BIT;
		r = own.vkCreateComputePipelines(d, cache, 1, &info, allocator, &list[i]);
	}
	return r;
}

static void my_vkCmdBindPipeline(VkCommandBuffer b, VkPipelineBindPoint point, VkPipeline pipeline)
{
	own.vkCmdBindPipeline(b, point == VK_PIPELINE_BIND_POINT_RAY_TRACING_KHR ? VK_PIPELINE_BIND_POINT_COMPUTE : point, pipeline);
}

#define TABLE const VkStridedDeviceAddressRegionKHR *

static void my_vkCmdTraceRaysKHR(VkCommandBuffer b, TABLE from, TABLE miss, TABLE hit, TABLE call, uint32_t x, uint32_t y, uint32_t z)
{
	(void)from, (void)miss, (void)hit, (void)call;
	own.vkCmdDispatch(b, x, y, z);
}

static void my_vkCmdTraceRaysIndirectKHR(VkCommandBuffer b, TABLE from, TABLE miss, TABLE hit, TABLE call, VkDeviceAddress sizes)
{
	(void)from, (void)miss, (void)hit, (void)call;
	own.vkCmdDispatch(b, (uint32_t)sizes, 1, 1);
}

static void my_vkCmdTraceRaysIndirect2KHR(VkCommandBuffer b, VkDeviceAddress all) { own.vkCmdDispatch(b, (uint32_t)all, 1, 1); }

/* The buffers that these would be kept in are not looked at: a fill takes the time. */
static VkBuffer scratch_of(const void *address) { return (VkBuffer)address; }

static void my_vkCmdBuildAccelerationStructuresKHR(VkCommandBuffer b, uint32_t count, const VkAccelerationStructureBuildGeometryInfoKHR *infos,
						   const VkAccelerationStructureBuildRangeInfoKHR *const *ranges)
{
	(void)ranges;
	for (uint32_t i = 0; i < count; i++)
		own.vkCmdFillBuffer(b, scratch_of(infos[i].scratchData.hostAddress), 0, 4096, 7);
}

static void my_vkCmdFillBuffer(VkCommandBuffer b, VkBuffer to, VkDeviceSize offset, VkDeviceSize size, uint32_t data)
{
	own.vkCmdFillBuffer(b, to, offset, size, data);
}

static void my_vkCmdCopyAccelerationStructureKHR(VkCommandBuffer b, const VkCopyAccelerationStructureInfoKHR *info)
{
	own.vkCmdFillBuffer(b, scratch_of((void *)info->src), 0, 4096, 9);
}

static PFN_vkVoidFunction ray_function(const char *name)
{
#define RAY(function)                                                                                                   \
	if (!strcmp(name, #function))                                                                                   \
		return (PFN_vkVoidFunction)my_##function;
	RAY(vkCreateRayTracingPipelinesKHR)
	RAY(vkCmdTraceRaysKHR)
	RAY(vkCmdTraceRaysIndirectKHR)
	RAY(vkCmdTraceRaysIndirect2KHR)
	RAY(vkCmdBuildAccelerationStructuresKHR)
	RAY(vkCmdCopyAccelerationStructureKHR)
	return NULL;
}

/* ---- the way in ------------------------------------------------------------------------------------------ */

static PFN_vkVoidFunction my_get_device(VkDevice device, const char *name)
{
	PFN_vkVoidFunction found = next_device(device, name);

#define REPLACE(function)                                                                                               \
	if (found && (!strcmp(name, #function) || !strcmp(name, #function "KHR"))) {                                    \
		own.function = (PFN_##function)found;                                                                   \
		return (PFN_vkVoidFunction)my_##function;                                                               \
	}
	REPLACED(REPLACE)
#undef REPLACE
	return found || !is("rays") ? found : ray_function(name);
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
	REPLACE(vkGetPhysicalDeviceProperties2, properties, my_properties)
	REPLACE(vkGetDeviceProcAddr, next_device, my_get_device)
	return found;
}

/* A loader would look for this; so it is plain that we are a driver. */
EXPORT VkResult vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
	*version = 5;
	return VK_SUCCESS;
}
