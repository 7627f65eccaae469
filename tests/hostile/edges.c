// cc: -Wno-alloc-size-larger-than -Wno-use-after-free
/* every odd size and alignment, with the errno that comes of it */
#include "hostile.h"
#include <malloc.h>

static volatile size_t zero, huge = (size_t)1 << 62, most = SIZE_MAX;

static void say(const char *what, void *p)
{
	printf("%-24s %s errno %d\n", what, p ? "block" : "NULL", errno);
	free(p);
	errno = 11;                             /* success must leave it alone */
}

static void *memaligned(size_t alignment, size_t size)
{
	void *p = NULL;
	int error = posix_memalign(&p, alignment, size);

	printf("posix_memalign %d ", error);
	return error ? NULL : p;
}

int main(void)
{
	void *p;

	errno = 11;
	say("malloc 0", malloc(zero));
	say("malloc huge", malloc(huge));
	say("malloc most", malloc(most));
	say("calloc 0 0", calloc(zero, zero));
	say("calloc 0 n", calloc(zero, 10));
	say("calloc overflow", calloc(huge, 8));
	say("calloc huge", calloc(huge, 1));
	say("realloc NULL", realloc(NULL, 10));
	say("realloc NULL 0", realloc(NULL, zero));
	say("realloc to 0", realloc(malloc(10), zero));
	p = malloc(10);
	say("realloc huge", realloc(p, huge));
	say("reallocarray overflow", reallocarray(p, huge, 8));
	say("the old block", p);
	say("reallocarray", reallocarray(NULL, 3, 8));
	say("memalign 0", memalign(zero, 100));
	say("memalign 3", memalign(3, 100));
	say("memalign huge", memalign(huge, 100));
	say("aligned_alloc 64", aligned_alloc(64, 100));
	say("aligned_alloc 3", aligned_alloc(3, 100));
	say("memaligned 8", memaligned(8, 100));
	say("memaligned 4", memaligned(4, 100));
	say("memaligned 24", memaligned(24, 100));
	say("memaligned 0 bytes", memaligned(64, zero));
	say("memaligned huge", memaligned(64, huge));
	say("valloc", valloc(100));
	say("valloc huge", valloc(huge));
	say("pvalloc", pvalloc(100));
	say("pvalloc most", pvalloc(most));
	free(NULL);
	printf("usable of NULL %zu, errno %d\n", malloc_usable_size(NULL), errno);
	for (size_t a = 16; a <= 1 << 21; a *= 2) {
		p = aligned_alloc(a, a);
		if (!p || (uintptr_t)p % a)
			printf("not aligned to %zu\n", a);
		free(p);
	}
	return 0;
}
