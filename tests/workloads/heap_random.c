/*
 * heap_random.c - one thread, every way to get a block, random order, exact books.
 */
#include "expect.h"
#include <malloc.h>

enum { SLOTS = 3000, STEPS = 200000 };

struct slot {
	void *block;
	size_t size;
};

static void *get(int how, size_t size)
{
	void *p = NULL;

	switch (how) {
	case 0: return calloc(size / 8 + 1, 8);
	case 1: return posix_memalign(&p, 256, size) ? NULL : p;
	case 2: return aligned_alloc(64, size);
	case 3: return memalign(4096, size);
	case 4: return valloc(size);
	case 5: return reallocarray(NULL, size / 8 + 1, 8);
	case 6: return realloc(NULL, size);
	default: return malloc(size);
	}
}

static size_t asked(int how, size_t size)
{
	return how == 0 || how == 5 ? (size / 8 + 1) * 8 : size;
}

int main(void)
{
	static struct slot slot[SLOTS];
	struct books b = { 0 };
	uint64_t state = 42;

	for (int i = 0; i < STEPS; i++) {
		struct slot *s = &slot[dice(&state) % SLOTS];
		size_t size = dice(&state) % 100 ? dice(&state) % 2000 : dice(&state) % 200000;
		int how = dice(&state) % 40;

		if (!s->block) {
			s->size = asked(how, size);
			s->block = used(get(how, size));
			books_alloc(&b, s->size);
		} else if (dice(&state) % 3 == 0 && size) {
			s->block = used(realloc(s->block, size));
			books_realloc(&b, s->size, size);
			s->size = size;
		} else {
			free(s->block);
			books_free(&b, s->size);
			s->block = NULL;
		}
	}
	books_say(&b);
	return 0;
}
