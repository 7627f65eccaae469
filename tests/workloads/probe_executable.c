/*
 * probe_executable.c - a program whose own function a plugin calls.
 */
#include <dlfcn.h>
#include <stdio.h>

long host_number(void);
long host_number(void) { return 42; }

int main(int argc, char **argv)
{
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
	long (*ask)(void) = plugin ? (long (*)(void))dlsym(plugin, "p_ask_host") : NULL, sum = 0;

	if (!ask)
		return 1;
	for (int i = 0; i < 5; i++)
		sum += ask();
	printf("%ld\n", sum);
	return 0;
}
