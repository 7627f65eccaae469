// cc: -ldl
/*
 * opencl_plugin.c PATH - a program that knows nothing of OpenCL and loads a plugin that is linked to it, RTLD_LOCAL.
 */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*run)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_main") : NULL;

	if (!run) {
		puts(dlerror());
		return 1;
	}
	return run();
}
