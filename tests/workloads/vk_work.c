/*
 * vk_work.c - Vulkan work of every kind; says what must be seen of it.
 *
 *   vk_work SCENE [VERSION]      VERSION: 10, 11, 12 (default), 13
 *
 * Lines "work NAME COUNT BYTES GROUPS LOCAL" are the truth, "result" what it computed, "time NS" its own stamps,
 * "time all NS" the host's clock around them.
 */
#include "vk_client.h"
#include <time.h>

enum { COUNT = 4096, LOCAL = 64 };

static struct client c;

static void start(uint32_t rounds, const void *features)
{
	client_instance(&c, NULL, 0);
	client_device(&c, features);
	client_data(&c, COUNT);
	client_layout(&c);
	c.module = client_module(&c, vk_scale, sizeof vk_scale);
	c.pipeline = client_pipeline(&c, c.module, "main", LOCAL, rounds);
}

static void finish(void)
{
	say("result %llu\n", (unsigned long long)client_sum(&c));
	client_end(&c);
}

static void truth(const char *name, uint64_t count, uint64_t bytes, uint32_t groups, uint32_t local)
{
	say("work %s %llu %llu %u %u\n", name, (unsigned long long)count, (unsigned long long)bytes, groups, local);
}

static void wait_fence(VkCommandBuffer b)
{
	VkFenceCreateInfo info = { .sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO };
	VkFence fence;

	GOOD(vkCreateFence(c.device, &info, NULL, &fence));
	client_submit(&c, b, fence);
	GOOD(vkWaitForFences(c.device, 1, &fence, VK_TRUE, 10000000000ull));
	vkDestroyFence(c.device, fence, NULL);
}

/* ---- scenes ------------------------------------------------------------------------------------------ */

static void ops(void)
{
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	VkBuffer other = client_buffer(&c, COUNT * 4);
	VkMemoryRequirements need;
	VkDeviceMemory memory;
	VkBufferCopy copies[2] = { { 0, 0, 1024 }, { 1024, 1024, 512 } };
	uint32_t groups[3] = { 3, 1, 1 };

	vkGetBufferMemoryRequirements(c.device, other, &need);
	memory = client_memory(&c, need.size, need.memoryTypeBits);
	GOOD(vkBindBufferMemory(c.device, other, memory, 0));
	client_begin(b, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, 0);
	client_bind(&c, b, 3, 1);
	vkCmdDispatch(b, 5, 1, 1);
	client_barrier(b);
	vkCmdUpdateBuffer(b, other, 0, sizeof groups, groups);
	client_barrier(b);
	vkCmdDispatchIndirect(b, other, 0);
	client_barrier(b);
	if (c.version >= VK_API_VERSION_1_1) {
		vkCmdDispatchBase(b, 0, 0, 0, 5, 1, 1);
		client_barrier(b);
	}
	vkCmdCopyBuffer(b, c.buffer, other, 2, copies);
	client_barrier(b);
	vkCmdFillBuffer(b, c.buffer, 8192, VK_WHOLE_SIZE, 7);
	GOOD(vkEndCommandBuffer(b));
	wait_fence(b);
	truth("kernel", c.version >= VK_API_VERSION_1_1 ? 2 : 1, 0, 5, LOCAL);
	truth("kernel", 1, 0, 0, LOCAL);
	truth("vkCmdUpdateBuffer", 1, 12, 0, 0);
	truth("vkCmdCopyBuffer", 1, 1536, 0, 0);
	truth("vkCmdFillBuffer", 1, COUNT * 4 - 8192, 0, 0);
	vkDestroyBuffer(c.device, other, NULL);
	vkFreeMemory(c.device, memory, NULL);
}

static VkCommandBuffer one_dispatch(VkCommandBufferUsageFlags flags, uint32_t groups)
{
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);

	client_begin(b, flags, 0);
	client_bind(&c, b, 5, 3);
	vkCmdDispatch(b, groups, 1, 1);
	client_barrier(b);
	GOOD(vkEndCommandBuffer(b));
	return b;
}

/* Many submits of one command buffer, most of them while others are at work. */
static void resubmit(void)
{
	VkCommandBuffer b = one_dispatch(VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, 8);

	for (int i = 0; i < 200; i++)
		client_submit(&c, b, VK_NULL_HANDLE);
	GOOD(vkQueueWaitIdle(c.queue));
	truth("kernel", 200, 0, 8, LOCAL);
}

/* The same command buffer several times in one batch. */
static void twice(void)
{
	VkCommandBuffer b = one_dispatch(VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, 8);
	VkCommandBuffer d = one_dispatch(VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, 9);
	VkCommandBuffer list[5] = { b, d, b, d, b };
	VkSubmitInfo infos[2] = {
		{ .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 5, .pCommandBuffers = list },
		{ .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = 2, .pCommandBuffers = list },
	};

	GOOD(vkQueueSubmit(c.queue, 2, infos, VK_NULL_HANDLE));
	GOOD(vkDeviceWaitIdle(c.device));
	truth("kernel", 4, 0, 8, LOCAL);
	truth("kernel", 3, 0, 9, LOCAL);
}

/* one_by_one: for the validation layer 1.3.239, which ends the program when a primary with queries in its secondaries is
 * submitted again before it is done. */
static void execute(int one_by_one)
{
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	VkCommandBuffer s[4];

	s[0] = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_SECONDARY);
	client_begin(s[0], VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, 1);
	client_bind(&c, s[0], 3, 1);
	vkCmdDispatch(s[0], 6, 1, 1);
	client_barrier(s[0]);
	vkCmdDispatch(s[0], 7, 1, 1);
	client_barrier(s[0]);
	GOOD(vkEndCommandBuffer(s[0]));
	s[1] = s[2] = s[3] = s[0];
	client_begin(b, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, 0);
	client_bind(&c, b, 3, 1);
	vkCmdDispatch(b, 2, 1, 1);
	client_barrier(b);
	vkCmdExecuteCommands(b, 4, s);
	GOOD(vkEndCommandBuffer(b));
	for (int i = 0; i < 3; i++) {
		client_submit(&c, b, VK_NULL_HANDLE);
		if (one_by_one)
			GOOD(vkQueueWaitIdle(c.queue));
	}
	GOOD(vkQueueWaitIdle(c.queue));
	truth("kernel", 3, 0, 2, LOCAL);
	truth("kernel", 12, 0, 6, LOCAL);
	truth("kernel", 12, 0, 7, LOCAL);
}

static void secondary(void) { execute(0); }
static void secondary_slow(void) { execute(1); }

/* Recorded anew again and again: by reset of the pool, of the buffer, or by beginning it; then freed. */
static void rerecord(void)
{
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);

	for (uint32_t i = 1; i <= 30; i++) {
		if (i % 3 == 0)
			GOOD(vkResetCommandBuffer(b, 0));
		if (i % 7 == 0)
			GOOD(vkResetCommandPool(c.device, c.pool, 0));
		client_begin(b, VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT, 0);
		client_bind(&c, b, 3, i);
		for (uint32_t k = 0; k < i * 4; k++) {
			vkCmdDispatch(b, i, 1, 1);
			client_barrier(b);
		}
		GOOD(vkEndCommandBuffer(b));
		wait_fence(b);
		truth("kernel", i * 4, 0, i, LOCAL);
		if (i % 10 == 0) {
			vkFreeCommandBuffers(c.device, c.pool, 1, &b);
			b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
		}
	}
}

static void many(void)
{
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);

	client_begin(b, 0, 0);
	client_bind(&c, b, 3, 1);
	for (int i = 0; i < 2000; i++)
		vkCmdDispatch(b, 1, 1, 1);
	GOOD(vkEndCommandBuffer(b));
	wait_fence(b);
	truth("kernel", 2000, 0, 1, LOCAL);
}

/* ---- work that takes a while ------------------------------------------------------------------------- */

enum { TIMED = 5 };

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

/* With own stamps around each piece, and the host's clock around them all. */
static void time_each(void (*piece)(VkCommandBuffer b, uint32_t i))
{
	VkQueryPoolCreateInfo info = { .sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO, .queryType = VK_QUERY_TYPE_TIMESTAMP, .queryCount = TIMED * 2 };
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	VkQueryPool queries;
	uint64_t stamps[TIMED * 2], begin;

	GOOD(vkCreateQueryPool(c.device, &info, NULL, &queries));
	client_begin(b, 0, 0);
	vkCmdResetQueryPool(b, queries, 0, TIMED * 2);
	client_bind(&c, b, 3, 1);
	for (uint32_t i = 0; i < TIMED; i++) {
		vkCmdWriteTimestamp(b, VK_PIPELINE_STAGE_TOP_OF_PIPE_BIT, queries, i * 2);
		piece(b, i);
		vkCmdWriteTimestamp(b, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, queries, i * 2 + 1);
		client_barrier(b);
	}
	GOOD(vkEndCommandBuffer(b));
	begin = now();
	wait_fence(b);
	say("time all %llu\n", (unsigned long long)(now() - begin));
	GOOD(vkGetQueryPoolResults(c.device, queries, 0, TIMED * 2, sizeof stamps, stamps, 8, VK_QUERY_RESULT_64_BIT | VK_QUERY_RESULT_WAIT_BIT));
	for (uint32_t i = 0; i < TIMED; i++)
		say("time %llu\n", (unsigned long long)((stamps[i * 2 + 1] - stamps[i * 2]) * c.period));
	vkDestroyQueryPool(c.device, queries, NULL);
}

static void dispatch_all(VkCommandBuffer b, uint32_t i)
{
	(void)i;
	vkCmdDispatch(b, COUNT / LOCAL, 1, 1);
}

static void timed(void)
{
	time_each(dispatch_all);
	truth("kernel", TIMED, 0, COUNT / LOCAL, LOCAL);
}

/* The same after a render pass; the host's clock alone tells, as the driver takes the program's stamps too late then. */
static void rendered(void)
{
	VkRenderingInfo info = { .sType = VK_STRUCTURE_TYPE_RENDERING_INFO, .renderArea = { .extent = { 256, 256 } }, .layerCount = 1 };
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);

	client_begin(b, 0, 0);
	vkCmdBeginRendering(b, &info);
	vkCmdEndRendering(b);
	GOOD(vkEndCommandBuffer(b));
	wait_fence(b);
	time_each(dispatch_all);
	truth("kernel", TIMED, 0, COUNT / LOCAL, LOCAL);
}

enum { LARGE = 64 << 20 };

static VkBuffer large[2];

static void fill_or_copy(VkCommandBuffer b, uint32_t i)
{
	VkBufferCopy whole = { 0, 0, LARGE };

	if (i % 2)
		vkCmdCopyBuffer(b, large[0], large[1], 1, &whole);
	else
		vkCmdFillBuffer(b, large[0], 0, LARGE, i);
}

static void moved(void)
{
	VkMemoryRequirements need;
	VkDeviceMemory memory[2];

	for (int i = 0; i < 2; i++) {
		large[i] = client_buffer(&c, LARGE);
		vkGetBufferMemoryRequirements(c.device, large[i], &need);
		memory[i] = client_memory(&c, need.size, need.memoryTypeBits);
		GOOD(vkBindBufferMemory(c.device, large[i], memory[i], 0));
	}
	time_each(fill_or_copy);
	truth("vkCmdFillBuffer", 3, LARGE, 0, 0);
	truth("vkCmdCopyBuffer", 2, LARGE, 0, 0);
	for (int i = 0; i < 2; i++) {
		vkDestroyBuffer(c.device, large[i], NULL);
		vkFreeMemory(c.device, memory[i], NULL);
	}
}

/* ------------------------------------------------------------------------------------------------------- */

static void submit2(void)
{
	VkCommandBuffer b = one_dispatch(VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT, 4);
	VkCommandBufferSubmitInfo list[3] = {
		{ .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = b },
		{ .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = one_dispatch(0, 5) },
		{ .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = b },
	};
	VkSubmitInfo2 info = { .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2, .commandBufferInfoCount = 3, .pCommandBufferInfos = list };

	GOOD(vkQueueSubmit2(c.queue, 1, &info, VK_NULL_HANDLE));
	GOOD(vkDeviceWaitIdle(c.device));
	truth("kernel", 2, 0, 4, LOCAL);
	truth("kernel", 1, 0, 5, LOCAL);
}

static VkImage an_image(VkDeviceMemory *memory)
{
	VkImageCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D, .format = VK_FORMAT_R8G8B8A8_UNORM,
		.extent = { 32, 32, 1 }, .mipLevels = 1, .arrayLayers = 1, .samples = VK_SAMPLE_COUNT_1_BIT, .tiling = VK_IMAGE_TILING_OPTIMAL,
		.usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT,
	};
	VkMemoryRequirements need;
	VkImage image;

	GOOD(vkCreateImage(c.device, &info, NULL, &image));
	vkGetImageMemoryRequirements(c.device, image, &need);
	*memory = client_memory(&c, need.size, need.memoryTypeBits);
	GOOD(vkBindImageMemory(c.device, image, *memory, 0));
	return image;
}

static void to_general(VkCommandBuffer b, VkImage image)
{
	VkImageMemoryBarrier change = {
		.sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER, .dstAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT, .newLayout = VK_IMAGE_LAYOUT_GENERAL,
		.srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED, .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED, .image = image,
		.subresourceRange = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 },
	};

	vkCmdPipelineBarrier(b, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0, NULL, 1, &change);
}

/* Images: cleared, copied, blitted, from and to buffers; in the newer forms too, where there are any. */
static void images(void)
{
	VkCommandBuffer b = client_commands(&c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	VkImageSubresourceRange all = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1 };
	VkImageSubresourceLayers layer = { VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1 };
	VkClearColorValue color = { .float32 = { 1, 0, 1, 0 } };
	VkImageCopy copy = { layer, { 0 }, layer, { 0 }, { 32, 32, 1 } };
	VkImageBlit blit = { layer, { { 0 }, { 32, 32, 1 } }, layer, { { 0 }, { 16, 16, 1 } } };
	VkBufferImageCopy fill = { .imageSubresource = layer, .imageExtent = { 16, 32, 1 } };
	VkImageCopy2 copy2 = { VK_STRUCTURE_TYPE_IMAGE_COPY_2, NULL, layer, { 0 }, layer, { 0 }, { 32, 32, 1 } };
	VkImageBlit2 blit2 = { VK_STRUCTURE_TYPE_IMAGE_BLIT_2, NULL, layer, { { 0 }, { 32, 32, 1 } }, layer, { { 0 }, { 16, 16, 1 } } };
	VkBufferImageCopy2 fill2 = { .sType = VK_STRUCTURE_TYPE_BUFFER_IMAGE_COPY_2, .imageSubresource = layer, .imageExtent = { 16, 32, 1 } };
	VkBufferCopy2 part = { VK_STRUCTURE_TYPE_BUFFER_COPY_2, NULL, 0, 8192, 640 };
	VkDeviceMemory memory[2];
	VkImage image[2] = { an_image(&memory[0]), an_image(&memory[1]) };
	int times = c.version >= VK_API_VERSION_1_3 ? 2 : 1;

	client_begin(b, 0, 0);
	to_general(b, image[0]);
	to_general(b, image[1]);
	vkCmdClearColorImage(b, image[0], VK_IMAGE_LAYOUT_GENERAL, &color, 1, &all);
	client_barrier(b);
	vkCmdCopyBufferToImage(b, c.buffer, image[0], VK_IMAGE_LAYOUT_GENERAL, 1, &fill);
	client_barrier(b);
	vkCmdCopyImage(b, image[0], VK_IMAGE_LAYOUT_GENERAL, image[1], VK_IMAGE_LAYOUT_GENERAL, 1, &copy);
	client_barrier(b);
	vkCmdBlitImage(b, image[1], VK_IMAGE_LAYOUT_GENERAL, image[0], VK_IMAGE_LAYOUT_GENERAL, 1, &blit, VK_FILTER_NEAREST);
	client_barrier(b);
	vkCmdCopyImageToBuffer(b, image[0], VK_IMAGE_LAYOUT_GENERAL, c.buffer, 1, &fill);
	if (times == 2) {
		VkCopyBufferToImageInfo2 i0 = { VK_STRUCTURE_TYPE_COPY_BUFFER_TO_IMAGE_INFO_2, NULL, c.buffer, image[0], VK_IMAGE_LAYOUT_GENERAL, 1, &fill2 };
		VkCopyImageInfo2 i1 = { VK_STRUCTURE_TYPE_COPY_IMAGE_INFO_2, NULL, image[0], VK_IMAGE_LAYOUT_GENERAL, image[1], VK_IMAGE_LAYOUT_GENERAL, 1, &copy2 };
		VkBlitImageInfo2 i2 = { VK_STRUCTURE_TYPE_BLIT_IMAGE_INFO_2, NULL, image[1], VK_IMAGE_LAYOUT_GENERAL, image[0], VK_IMAGE_LAYOUT_GENERAL, 1, &blit2,
					VK_FILTER_NEAREST };
		VkCopyImageToBufferInfo2 i3 = { VK_STRUCTURE_TYPE_COPY_IMAGE_TO_BUFFER_INFO_2, NULL, image[0], VK_IMAGE_LAYOUT_GENERAL, c.buffer, 1, &fill2 };
		VkCopyBufferInfo2 i4 = { VK_STRUCTURE_TYPE_COPY_BUFFER_INFO_2, NULL, c.buffer, c.buffer, 1, &part };

		client_barrier(b);
		vkCmdCopyBufferToImage2(b, &i0);
		client_barrier(b);
		vkCmdCopyImage2(b, &i1);
		client_barrier(b);
		vkCmdBlitImage2(b, &i2);
		client_barrier(b);
		vkCmdCopyImageToBuffer2(b, &i3);
		client_barrier(b);
		vkCmdCopyBuffer2(b, &i4);
		truth("vkCmdCopyBuffer", 1, 640, 0, 0);
	}
	GOOD(vkEndCommandBuffer(b));
	wait_fence(b);
	truth("vkCmdClearColorImage", 1, 32 * 32 * 4, 0, 0);
	truth("vkCmdCopyBufferToImage", times, 16 * 32 * 4, 0, 0);
	truth("vkCmdCopyImage", times, 32 * 32 * 4, 0, 0);
	truth("vkCmdBlitImage", times, 16 * 16 * 4, 0, 0);
	truth("vkCmdCopyImageToBuffer", times, 16 * 32 * 4, 0, 0);
	for (int i = 0; i < 2; i++) {
		vkDestroyImage(c.device, image[i], NULL);
		vkFreeMemory(c.device, memory[i], NULL);
	}
}

/* Nothing waits for it, and the device lives on: what is done by then is seen all the same. */
static void abandoned(void)
{
	client_submit(&c, one_dispatch(0, 4), VK_NULL_HANDLE);
	usleep(300000);
	truth("kernel", 1, 0, 4, LOCAL);
	say("result %llu\n", (unsigned long long)client_sum(&c));
	exit(0);
}

static void (*const scene[])(void) = { ops, resubmit, twice, secondary, secondary_slow, rerecord, many, timed, moved, rendered, submit2, images, abandoned };
static const char *const scene_name[] = { "ops", "resubmit", "twice", "secondary", "secondary_slow", "rerecord", "many", "timed", "moved", "rendered", "submit2", "images", "abandoned" };

int main(int argc, char **argv)
{
	int version = argc > 2 ? atoi(argv[2]) : 12;
	static const VkPhysicalDeviceVulkan12Features none = { .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES };
	static const VkPhysicalDeviceVulkan13Features features = {
		.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES, .pNext = (void *)&none, .synchronization2 = VK_TRUE, .dynamicRendering = VK_TRUE,
	};

	c.version = VK_MAKE_API_VERSION(0, version / 10, version % 10, 0);
	for (unsigned i = 0; argc > 1 && i < sizeof scene / sizeof *scene; i++)
		if (!strcmp(argv[1], scene_name[i])) {
			start(scene[i] == timed || scene[i] == rendered ? 50000 : scene[i] == many ? 1 : 100, version >= 13 ? &features : NULL);
			scene[i]();
			finish();
			return 0;
		}
	return 2;
}
