/* vk_loaders.c - several loaders in one process, all opened before the first is used: vk_loaders LOADER... */
#ifndef BY_DLSYM
#define BY_GETTER
#endif
#include "vk_client.h"
#include "vk_scale.h"

static void run(struct client *c)
{
	VkCommandBuffer b;
	Dl_info where;

	client_instance(c, NULL, 0);
	client_device(c, NULL);
	client_data(c, 4096);
	client_layout(c);
	c->module = client_module(c, vk_scale, sizeof vk_scale);
	c->pipeline = client_pipeline(c, c->module, "main", 64, 1);
	b = client_commands(c, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
	client_begin(b, 0, 0);
	client_bind(c, b, 3, 1);
	vkCmdDispatch(b, 4, 1, 1);
	GOOD(vkEndCommandBuffer(b));
	client_submit(c, b, VK_NULL_HANDLE);
	GOOD(vkDeviceWaitIdle(c->device));
	dladdr((void *)vkGetPhysicalDeviceFeatures, &where);
	say("result %llu by %s\n", (unsigned long long)client_sum(c), where.dli_fname);
	say("work kernel 1 0 4 64\n");
}

int main(int argc, char **argv)
{
	void *library[8];
	struct client c[8] = { 0 };

	for (int i = 1; i < argc && i < 8; i++) {
		library[i] = dlopen(argv[i], RTLD_NOW | RTLD_LOCAL);
		if (!library[i] || !dlsym(library[i], "vkGetInstanceProcAddr"))
			return 99;
	}
	for (int i = 1; i < argc && i < 8; i++) {
		client_library = library[i];
		c[i].version = VK_API_VERSION_1_1;
		run(&c[i]);
	}
	return 0;
}
