/*
 * temporary.c - a temporary allocation is freed by its thread's very next call.
 */
#include "expect.h"

int main(void)
{
	struct books b = { 0 };
	void *keep[10];

	for (int i = 0; i < 1000; i++) {        /* 1000 temporary ones */
		void *p = used(malloc(64));

		books_alloc(&b, 64);
		free(p);
		books_free(&b, 64);
	}
	for (int i = 0; i < 10; i++) {          /* of these only the last */
		keep[i] = used(malloc(32));
		books_alloc(&b, 32);
	}
	for (int i = 9; i >= 0; i--) {
		free(keep[i]);
		books_free(&b, 32);
	}
	books_say(&b);
	expect("totals.temporary_allocs", 1001);
	return 0;
}
