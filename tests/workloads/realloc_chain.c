/*
 * realloc_chain.c - a vector that grows by doubling among others: the peak never holds old and new at once.
 */
#include "expect.h"

enum { VECTORS = 50, STEPS = 18 };

int main(void)
{
	void *v[VECTORS] = { 0 };
	size_t size[VECTORS] = { 0 };
	struct books b = { 0 };

	for (int step = 0; step < STEPS; step++)
		for (int i = 0; i < VECTORS; i++) {
			size_t more = (size_t)16 << step;

			v[i] = used(realloc(v[i], more));
			if (size[i])
				books_realloc(&b, size[i], more);
			else
				books_alloc(&b, more);
			size[i] = more;
		}
	for (int i = 0; i < VECTORS; i++) {
		v[i] = used(realloc(v[i], 24));
		books_realloc(&b, size[i], 24);
	}
	books_say(&b);
	return 0;
}
