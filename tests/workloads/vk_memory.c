/*
 * vk_memory.c - device memory whose books the program keeps itself: blocks, what is bound in them, imports, maps, a leak.
 */
#include "vk_client.h"

static struct client c;
static struct books books;

static VkDeviceMemory take(uint64_t bytes, uint32_t allowed)
{
	books_alloc(&books, bytes);
	return client_memory(&c, bytes, allowed);
}

static void give(VkDeviceMemory memory, uint64_t bytes)
{
	books_free(&books, bytes);
	vkFreeMemory(c.device, memory, NULL);
}

/* One large block with three buffers in it, as sub-allocators do. */
static void block(void)
{
	VkBuffer b[3];
	VkMemoryRequirements need;
	VkDeviceMemory memory;
	VkBindBufferMemoryInfo two[2];

	for (int i = 0; i < 3; i++)
		b[i] = client_buffer(&c, 65536);
	vkGetBufferMemoryRequirements(c.device, b[0], &need);
	memory = take(1 << 20, need.memoryTypeBits);
	GOOD(vkBindBufferMemory(c.device, b[0], memory, 0));
	for (int i = 0; i < 2; i++)
		two[i] = (VkBindBufferMemoryInfo){ VK_STRUCTURE_TYPE_BIND_BUFFER_MEMORY_INFO, NULL, b[i + 1], memory, 131072 * (i + 1) };
	GOOD(vkBindBufferMemory2(c.device, 2, two));
	vkDestroyBuffer(c.device, b[1], NULL);
	give(memory, 1 << 20);                  /* two are still bound */
	vkDestroyBuffer(c.device, b[0], NULL);
	vkDestroyBuffer(c.device, b[2], NULL);
}

static void image(int newer)
{
	VkImageCreateInfo info = {
		.sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO, .imageType = VK_IMAGE_TYPE_2D, .format = VK_FORMAT_R8G8B8A8_UNORM,
		.extent = { 640, 480, 1 }, .mipLevels = 1, .arrayLayers = 1, .samples = VK_SAMPLE_COUNT_1_BIT,
		.tiling = VK_IMAGE_TILING_OPTIMAL, .usage = VK_IMAGE_USAGE_TRANSFER_DST_BIT | VK_IMAGE_USAGE_STORAGE_BIT,
	};
	VkMemoryRequirements need;
	VkBindImageMemoryInfo bind;
	VkDeviceMemory memory;
	VkImage image;

	GOOD(vkCreateImage(c.device, &info, NULL, &image));
	vkGetImageMemoryRequirements(c.device, image, &need);
	memory = take(need.size, need.memoryTypeBits);
	bind = (VkBindImageMemoryInfo){ VK_STRUCTURE_TYPE_BIND_IMAGE_MEMORY_INFO, NULL, image, memory, 0 };
	GOOD(newer ? vkBindImageMemory2(c.device, 1, &bind) : vkBindImageMemory(c.device, image, memory, 0));
	say("image %llu\n", (unsigned long long)need.size);
	vkDestroyImage(c.device, image, NULL);
	give(memory, need.size);
}

static void map(void)
{
	VkDeviceMemory memory = take(8192, ~0u);
	void *at;

	GOOD(vkMapMemory(c.device, memory, 4096, 4096, 0, &at));
	memset(at, 7, 4096);
	vkUnmapMemory(c.device, memory);
	give(memory, 8192);
}

/* Memory of our own that the device is given: it is no more than it was. */
static void import(void)
{
	static char own[65536] __attribute__((aligned(4096)));
	VkImportMemoryHostPointerInfoEXT pointer = {
		.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT,
		.handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_HOST_ALLOCATION_BIT_EXT, .pHostPointer = own,
	};
	VkMemoryAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &pointer, .allocationSize = sizeof own, .memoryTypeIndex = host_type(&c, ~0u),
	};
	VkDeviceMemory memory;

	GOOD(vkAllocateMemory(c.device, &info, NULL, &memory));
	vkFreeMemory(c.device, memory, NULL);
}

/* Memory that has gone out as a file and comes in again: there is no more of it than before. */
static void file(void)
{
	PFN_vkGetMemoryFdKHR get_fd = (PFN_vkGetMemoryFdKHR)vkGetDeviceProcAddr(c.device, "vkGetMemoryFdKHR");
	VkExportMemoryAllocateInfo export = {
		.sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO, .handleTypes = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
	};
	VkImportMemoryFdInfoKHR import = {
		.sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR, .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT,
	};
	VkMemoryAllocateInfo info = {
		.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .pNext = &export, .allocationSize = 1 << 21, .memoryTypeIndex = host_type(&c, ~0u),
	};
	VkMemoryGetFdInfoKHR ask = { .sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR, .handleType = VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT };
	VkDeviceMemory memory, again;

	books_alloc(&books, info.allocationSize);
	GOOD(vkAllocateMemory(c.device, &info, NULL, &memory));
	ask.memory = memory;
	GOOD(get_fd(c.device, &ask, &import.fd));
	info.pNext = &import;
	GOOD(vkAllocateMemory(c.device, &info, NULL, &again));
	vkFreeMemory(c.device, again, NULL);
	give(memory, info.allocationSize);
}

/* Too large for any device. */
static void refused(void)
{
	VkMemoryAllocateInfo info = { .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = 1ull << 46, .memoryTypeIndex = host_type(&c, ~0u) };
	VkDeviceMemory memory;

	say("refused %d\n", vkAllocateMemory(c.device, &info, NULL, &memory) < 0);
}

int main(void)
{
	VkDeviceMemory leak;

	c.version = VK_API_VERSION_1_2;
	c.extension[0] = VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME;
	c.extension[1] = VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME;
	client_instance(&c, NULL, 0);
	client_device(&c, NULL);
	for (int i = 0; i < 3; i++) {
		block();
		image(i % 2);
		map();
	}
	import();
	file();
	refused();
	leak = take(12288, ~0u);
	(void)leak;
	vkDestroyCommandPool(c.device, c.pool, NULL);
	vkDestroyDevice(c.device, NULL);
	vkDestroyInstance(c.instance, NULL);
	expect("devices.0.peak_bytes", books.peak);
	expect("devices.0.allocs", books.allocs);
	expect("devices.0.frees", books.frees);
	expect("devices.0.live_at_exit_bytes", books.live);
	return 0;
}
