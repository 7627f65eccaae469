/*
 * vk_names.c - names and labels by VK_EXT_debug_utils, entry points, source files; says which name each dispatch must get.
 */
#include "vk_client.h"
#include "vk_fixed.h"
#include "vk_fixed_debug.h"
#include "vk_scale_entry.h"
#include "vk_scale_long.h"

static struct client c;
static PFN_vkSetDebugUtilsObjectNameEXT set_name;
static PFN_vkCmdBeginDebugUtilsLabelEXT begin_label;
static PFN_vkCmdEndDebugUtilsLabelEXT end_label;
static PFN_vkQueueBeginDebugUtilsLabelEXT begin_queue_label;
static PFN_vkQueueEndDebugUtilsLabelEXT end_queue_label;

static void name(VkObjectType type, uint64_t handle, const char *text)
{
	VkDebugUtilsObjectNameInfoEXT info = {
		.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_OBJECT_NAME_INFO_EXT, .objectType = type, .objectHandle = handle, .pObjectName = text,
	};

	GOOD(set_name(c.device, &info));
}

static void label(VkCommandBuffer b, const char *text)
{
	VkDebugUtilsLabelEXT info = { .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, .pLabelName = text };

	begin_label(b, &info);
}

/* kernel NAME GROUPS LOCAL LABEL */
static void dispatch(VkCommandBuffer b, VkPipeline p, const char *wanted, uint32_t groups, const char *local, const char *text)
{
	c.pipeline = p;
	client_bind(&c, b, 3, 1);
	vkCmdDispatch(b, groups, 1, 1);
	client_barrier(b);
	say("kernel %s %u %s %s\n", wanted, groups, local, text);
}

int main(void)
{
	static const char *const extensions[] = { VK_EXT_DEBUG_UTILS_EXTENSION_NAME };
	VkDebugUtilsLabelEXT epoch = { .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, .pLabelName = "epoch 7" };
	char long_name[251] = { 0 };
	VkShaderModule module[5];
	VkPipeline p[6];
	VkCommandBuffer b;

	c.version = VK_API_VERSION_1_1;
	client_instance(&c, extensions, 1);
	client_device(&c, NULL);
	set_name = (PFN_vkSetDebugUtilsObjectNameEXT)vkGetInstanceProcAddr(c.instance, "vkSetDebugUtilsObjectNameEXT");
	begin_label = (PFN_vkCmdBeginDebugUtilsLabelEXT)vkGetDeviceProcAddr(c.device, "vkCmdBeginDebugUtilsLabelEXT");
	end_label = (PFN_vkCmdEndDebugUtilsLabelEXT)vkGetDeviceProcAddr(c.device, "vkCmdEndDebugUtilsLabelEXT");
	begin_queue_label = (PFN_vkQueueBeginDebugUtilsLabelEXT)vkGetInstanceProcAddr(c.instance, "vkQueueBeginDebugUtilsLabelEXT");
	end_queue_label = (PFN_vkQueueEndDebugUtilsLabelEXT)vkGetInstanceProcAddr(c.instance, "vkQueueEndDebugUtilsLabelEXT");
	client_data(&c, 4096);
	client_layout(&c);
	module[0] = client_module(&c, vk_scale, sizeof vk_scale);
	module[1] = client_module(&c, vk_scale_entry, sizeof vk_scale_entry);
	module[2] = client_module(&c, vk_fixed, sizeof vk_fixed);
	module[3] = client_module(&c, vk_fixed_debug, sizeof vk_fixed_debug);
	module[4] = client_module(&c, vk_scale_long, sizeof vk_scale_long);
	name(VK_OBJECT_TYPE_SHADER_MODULE, (uint64_t)module[2], "a module");
	p[0] = client_pipeline(&c, module[0], "main", 32, 1);
	p[1] = client_pipeline(&c, module[1], "scale_up", 16, 1);
	p[2] = client_pipeline(&c, module[2], "main", 0, 1);
	p[3] = client_pipeline(&c, module[3], "main", 0, 1);
	p[4] = client_pipeline(&c, module[0], "main", 128, 1);
	memset(long_name, 'e', sizeof long_name - 1);
	p[5] = client_pipeline(&c, module[4], long_name, 24, 1);
	name(VK_OBJECT_TYPE_PIPELINE, (uint64_t)p[0], "a pipeline");
	name(VK_OBJECT_TYPE_BUFFER, (uint64_t)c.buffer, "weights");
	name(VK_OBJECT_TYPE_QUEUE, (uint64_t)c.queue, "the queue");
	b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	client_begin(b, 0, 0);
	label(b, "outer");
	dispatch(b, p[0], "a pipeline", 1, "32x1x1", "outer");
	label(b, "inner");
	dispatch(b, p[1], "scale_up", 2, "16x1x1", "inner");
	end_label(b);
	dispatch(b, p[2], "a module", 3, "8x4x2", "outer");
	end_label(b);
	dispatch(b, p[3], "vk_fixed.comp", 4, "8x4x2", "-");
	dispatch(b, p[4], "main#*", 5, "128x1x1", "-");
	dispatch(b, p[5], long_name, 6, "24x1x1", "-");
	GOOD(vkEndCommandBuffer(b));
	client_submit(&c, b, VK_NULL_HANDLE);
	GOOD(vkDeviceWaitIdle(c.device));
	begin_queue_label(c.queue, &epoch);
	client_submit(&c, b, VK_NULL_HANDLE);
	end_queue_label(c.queue);
	GOOD(vkDeviceWaitIdle(c.device));
	say("result %llu\n", (unsigned long long)client_sum(&c));
	for (int i = 0; i < 6; i++)
		vkDestroyPipeline(c.device, p[i], NULL);
	for (int i = 1; i < 5; i++)
		vkDestroyShaderModule(c.device, module[i], NULL);
	c.module = module[0];
	c.pipeline = VK_NULL_HANDLE;
	client_end(&c);
	return 0;
}
