/*
 * vk_marks.c - marks by VK_EXT_debug_utils: between dispatches, in a secondary command buffer, in a queue, and inside of a render pass,
 * where nothing of ours may be put. Says what must be on the track, in its order.
 *
 *   vk_marks [LABELS]       with LABELS, so many labels instead, each another
 */
#include "vk_client.h"
#include <sys/resource.h>

static struct client c;

static VkDebugUtilsLabelEXT label(const char *text)
{
	return (VkDebugUtilsLabelEXT){ .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_LABEL_EXT, .pLabelName = text };
}

static void mark(VkCommandBuffer b, const char *text)
{
	VkDebugUtilsLabelEXT l = label(text);

	((PFN_vkCmdInsertDebugUtilsLabelEXT)vkGetDeviceProcAddr(c.device, "vkCmdInsertDebugUtilsLabelEXT"))(b, &l);
}

static void dispatch(VkCommandBuffer b)
{
	client_bind(&c, b, 3, 1);
	vkCmdDispatch(b, 4, 1, 1);
	client_barrier(b);
}

/* Nothing is drawn. */
static void render(VkCommandBuffer b)
{
	VkSubpassDescription subpass = { .pipelineBindPoint = VK_PIPELINE_BIND_POINT_GRAPHICS };
	VkRenderPassCreateInfo pass = { .sType = VK_STRUCTURE_TYPE_RENDER_PASS_CREATE_INFO, .subpassCount = 1, .pSubpasses = &subpass };
	VkFramebufferCreateInfo frame = { .sType = VK_STRUCTURE_TYPE_FRAMEBUFFER_CREATE_INFO, .width = 8, .height = 8, .layers = 1 };
	static VkRenderPass made;
	static VkFramebuffer buffer;
	VkRenderPassBeginInfo begin = { .sType = VK_STRUCTURE_TYPE_RENDER_PASS_BEGIN_INFO, .renderArea.extent = { 8, 8 } };

	if (!b) {
		vkDestroyFramebuffer(c.device, buffer, NULL);
		vkDestroyRenderPass(c.device, made, NULL);
		return;
	}
	GOOD(vkCreateRenderPass(c.device, &pass, NULL, &made));
	frame.renderPass = begin.renderPass = made;
	GOOD(vkCreateFramebuffer(c.device, &frame, NULL, &buffer));
	begin.framebuffer = buffer;
	vkCmdBeginRenderPass(b, &begin, VK_SUBPASS_CONTENTS_INLINE);
	mark(b, "inside");
	vkCmdEndRenderPass(b);
}

/* Says how much memory it took at most (KiB) after half of them, and in the end. */
static void labels(long count)
{
	PFN_vkCmdBeginDebugUtilsLabelEXT begin = (PFN_vkCmdBeginDebugUtilsLabelEXT)vkGetDeviceProcAddr(c.device, "vkCmdBeginDebugUtilsLabelEXT");
	PFN_vkCmdEndDebugUtilsLabelEXT end = (PFN_vkCmdEndDebugUtilsLabelEXT)vkGetDeviceProcAddr(c.device, "vkCmdEndDebugUtilsLabelEXT");
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	struct rusage half = { 0 }, all;
	char text[64];

	for (long i = 0; i < count; i++) {
		VkDebugUtilsLabelEXT l = label(text);

		if (i % 1000 == 0)
			client_begin(b, 0, 0);
		snprintf(text, sizeof text, "a label that comes but once: number %ld", i);
		begin(b, &l);
		end(b);
		if (i % 1000 == 999)
			GOOD(vkEndCommandBuffer(b));
		if (i == count / 2)
			getrusage(RUSAGE_SELF, &half);
	}
	getrusage(RUSAGE_SELF, &all);
	say("time %ld %ld\n", half.ru_maxrss, all.ru_maxrss);
}

int main(int argc, char **argv)
{
	static const char *const extensions[] = { VK_EXT_DEBUG_UTILS_EXTENSION_NAME };
	VkDebugUtilsLabelEXT between = label("between");
	VkCommandBuffer b, second;

	c.version = VK_API_VERSION_1_1;
	client_instance(&c, extensions, 1);
	client_device(&c, NULL);
	client_data(&c, 4096);
	client_layout(&c);
	c.module = client_module(&c, vk_scale, sizeof vk_scale);
	c.pipeline = client_pipeline(&c, c.module, "main", 64, 200);
	if (argc > 1) {
		labels(atol(argv[1]));
		client_end(&c);
		return 0;
	}
	second = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
	client_begin(second, 0, 1);
	mark(second, "second");
	GOOD(vkEndCommandBuffer(second));
	b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	client_begin(b, 0, 0);
	mark(b, "first");
	dispatch(b);
	mark(b, "middle");
	dispatch(b);
	render(b);
	mark(b, "last");
	vkCmdExecuteCommands(b, 1, &second);
	GOOD(vkEndCommandBuffer(b));
	for (int i = 0; i < 2; i++) {
		client_submit(&c, b, VK_NULL_HANDLE);
		GOOD(vkQueueWaitIdle(c.queue));
		((PFN_vkQueueInsertDebugUtilsLabelEXT)vkGetInstanceProcAddr(c.instance, "vkQueueInsertDebugUtilsLabelEXT"))(c.queue, &between);
		say("track first, kernel, middle, kernel, last, second, between\n");
	}
	say("result %llu\n", (unsigned long long)client_sum(&c));
	render(VK_NULL_HANDLE);
	client_end(&c);
	return 0;
}
