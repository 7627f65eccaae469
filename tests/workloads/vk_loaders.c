/* vk_loaders.c - several loaders in one process, all opened before the first is used: vk_loaders LOADER... */
#ifndef BY_DLSYM
#define BY_GETTER
#endif
#include "vk_client.h"

static void run(struct client *c)
{
	Dl_info where;

	client_start(c, 4096, 1);
	client_dispatch(c, 4);
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
