// cc: -Wno-use-after-free
/*
 * heap_edges.c - the odd calls: zero sizes, failures that count nothing, frees of NULL, strdup, wide aligned.
 */
#include "expect.h"
#include <malloc.h>
#include <wchar.h>

static volatile size_t huge = SIZE_MAX / 2;

static void fail_everywhere(void *p)
{
	void *out;

	used(malloc(huge));
	used(calloc(huge, 4));
	used(realloc(used(p), huge));           /* they fail, so p stays ours */
	used(reallocarray(used(p), huge, 4));
	used(memalign(64, huge));
	if (!posix_memalign(&out, 3, 100) || !posix_memalign(&out, 64, huge))
		abort();
}

int main(void)
{
	struct books b = { 0 };
	void *zero = used(malloc(0)), *page, *p, *text[3];

	books_alloc(&b, 0);
	free(NULL);
	free(zero);
	books_free(&b, 0);

	p = used(realloc(NULL, 100));
	books_alloc(&b, 100);
	fail_everywhere(p);
	if (used(realloc(p, 0)))                /* glibc: a free */
		abort();
	books_free(&b, 100);

	text[0] = used(strdup("twelve bytes"));
	books_alloc(&b, 13);
	text[1] = used(strndup("twelve bytes", 6));
	books_alloc(&b, 7);
	text[2] = used(wcsdup(L"four"));
	books_alloc(&b, 5 * sizeof(wchar_t));

	page = used(pvalloc(8192));
	books_alloc(&b, 8192);
	if (malloc_usable_size(page) < 8192)
		abort();
	for (int i = 0; i < 3; i++)
		free(text[i]);
	books_free(&b, 13 + 7 + 5 * sizeof(wchar_t));
	b.frees += 2;
	b.blocks -= 2;
	books_say(&b);
	return 0;
}
