// cc: -ldl
/* vk_plugin.c - loads a program that was built as a shared object, and runs its main: vk_plugin OBJECT ARGUMENTS... */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *object = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*run)(int, char **) = object ? (int (*)(int, char **))dlsym(object, "plugin_main") : NULL;

	if (!run) {
		fprintf(stderr, "%s\n", dlerror());
		return 99;
	}
	return run(argc - 1, argv + 1);
}
