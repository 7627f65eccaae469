// cc: -ldl
/* a program with a malloc of its own that looks for the next one, as many do */
#include "hostile.h"
#include <dlfcn.h>

static unsigned calls;

void *malloc(size_t size)
{
	static void *(*real)(size_t);

	if (!real)
		real = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	calls++;
	return real(size);
}

int main(void)
{
	void *(*found)(size_t) = (void *(*)(size_t))dlsym(RTLD_DEFAULT, "malloc");
	int (*next_puts)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "puts");
	unsigned before = calls;

	for (int i = 0; i < 1000; i++) {
		void *volatile p = malloc(10 + i);

		free(p);
	}
	printf("%u calls, default is mine: %d\n", calls - before, found == malloc);
	fflush(stdout);
	next_puts("puts found");
	printf("nothing: %d\n", dlsym(RTLD_NEXT, "no_such_name") == NULL);
	return 0;
}
