/*
 * name_c.c - a large block among small ones: who made it must be named, with its line, through a function
 * that the compiler put inside its caller. The comments "frame:" are what the test looks for.
 */
#include "expect.h"

static inline __attribute__((always_inline)) void *take(size_t size)
{
	return used(malloc(size));              /* frame: take */
}

__attribute__((noinline)) static void *weights_load(size_t size)
{
	void *p = take(size);           /* frame: weights_load */

	return used(p);
}

__attribute__((noinline)) static void *scratch(size_t size)
{
	return used(malloc(size));
}

int main(void)
{
	void *small[100], *w;

	for (int i = 0; i < 100; i++)
		small[i] = scratch(1000 + i);
	w = weights_load(8 << 20);              /* frame: main */
	for (int i = 0; i < 100; i++)
		free(small[i]);
	free(w);
	return 0;
}
