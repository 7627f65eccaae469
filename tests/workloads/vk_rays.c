/*
 * vk_rays.c - rays are traced, and structures for them built and copied, between dispatches, by a driver that only seems to do it
 * (vk_shim.c). Says what must be seen: the names of all work in its order.
 */
#include "vk_client.h"
#include "vk_scale_entry.h"

static struct client c;

#define RAYS(X)                                                                                                         \
	X(vkCreateRayTracingPipelinesKHR) X(vkCmdTraceRaysKHR) X(vkCmdTraceRaysIndirectKHR) X(vkCmdTraceRaysIndirect2KHR) \
	X(vkCmdBuildAccelerationStructuresKHR) X(vkCmdCopyAccelerationStructureKHR)
#define MEMBER(name) static PFN_##name name##_;
RAYS(MEMBER)

static VkPipeline ray_pipeline(VkShaderModule module)
{
	uint32_t values[2] = { 16, 1 };
	VkSpecializationMapEntry map[2] = { { 7, 0, 4 }, { 9, 4, 4 } };
	VkSpecializationInfo special = { 2, map, sizeof values, values };
	VkPipelineShaderStageCreateInfo stage = {
		.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO, .stage = VK_SHADER_STAGE_RAYGEN_BIT_KHR, .module = module,
		.pName = "scale_up", .pSpecializationInfo = &special,
	};
	VkRayTracingPipelineCreateInfoKHR info = {
		.sType = VK_STRUCTURE_TYPE_RAY_TRACING_PIPELINE_CREATE_INFO_KHR, .stageCount = 1, .pStages = &stage, .layout = c.layout,
	};
	VkPipeline pipeline;

	GOOD(vkCreateRayTracingPipelinesKHR_(c.device, VK_NULL_HANDLE, VK_NULL_HANDLE, 1, &info, NULL, &pipeline));
	return pipeline;
}

static void structures(VkCommandBuffer b, VkBuffer scratch)
{
	VkAccelerationStructureBuildGeometryInfoKHR build = {
		.sType = VK_STRUCTURE_TYPE_ACCELERATION_STRUCTURE_BUILD_GEOMETRY_INFO_KHR, .scratchData.hostAddress = (void *)scratch,
	};
	VkCopyAccelerationStructureInfoKHR copy = {
		.sType = VK_STRUCTURE_TYPE_COPY_ACCELERATION_STRUCTURE_INFO_KHR, .src = (VkAccelerationStructureKHR)scratch,
	};

	vkCmdBuildAccelerationStructuresKHR_(b, 1, &build, NULL);
	say("op vkCmdBuildAccelerationStructures 0\n");
	client_barrier(b);
	vkCmdCopyAccelerationStructureKHR_(b, &copy);
	say("op vkCmdCopyAccelerationStructure 0\n");
	client_barrier(b);
}

static void rays(VkCommandBuffer b, VkPipeline pipeline)
{
	client_bind(&c, b, 3, 1);
	vkCmdBindPipeline(b, VK_PIPELINE_BIND_POINT_RAY_TRACING_KHR, pipeline);
	vkCmdTraceRaysKHR_(b, NULL, NULL, NULL, NULL, 5, 1, 1);        /* the shader goes by x alone: two rows would run into each other */
	say("op scale_up 5\n");
	client_barrier(b);
	vkCmdTraceRaysIndirectKHR_(b, NULL, NULL, NULL, NULL, 3);
	say("op scale_up 0\n");
	client_barrier(b);
	vkCmdTraceRaysIndirect2KHR_(b, 3);
	say("op scale_up 0\n");
	client_barrier(b);
}

int main(void)
{
	VkPipeline pipeline;
	VkCommandBuffer b;
	VkBuffer scratch;
	VkMemoryRequirements need;
	VkDeviceMemory memory;
	VkShaderModule module;

	c.version = VK_API_VERSION_1_2;
	client_start(&c, 4096, 1);
#define FIND(name) name##_ = (PFN_##name)vkGetDeviceProcAddr(c.device, #name);
	RAYS(FIND)
	module = client_module(&c, vk_scale_entry, sizeof vk_scale_entry);
	pipeline = ray_pipeline(module);
	scratch = client_buffer(&c, 4096);
	vkGetBufferMemoryRequirements(c.device, scratch, &need);
	memory = client_memory(&c, need.size, need.memoryTypeBits);
	GOOD(vkBindBufferMemory(c.device, scratch, memory, 0));
	b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	client_begin(b, 0, 0);
	structures(b, scratch);
	rays(b, pipeline);
	client_bind(&c, b, 3, 1);
	vkCmdDispatch(b, 7, 1, 1);
	say("op main 7\n");
	GOOD(vkEndCommandBuffer(b));
	client_submit(&c, b, VK_NULL_HANDLE);
	GOOD(vkQueueWaitIdle(c.queue));
	say("result %llu\n", (unsigned long long)client_sum(&c));
	vkDestroyPipeline(c.device, pipeline, NULL);
	vkDestroyShaderModule(c.device, module, NULL);
	vkDestroyBuffer(c.device, scratch, NULL);
	vkFreeMemory(c.device, memory, NULL);
	client_end(&c);
	return 0;
}
