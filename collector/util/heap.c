/*
 * heap.c - large pages, for tables and for the work at the end of a recording.
 *
 * Lists of many megabytes are made and dropped then while somebody waits, and the kernel takes longer to bring a page of
 * 4 KiB than we take to fill it: after `import onnxruntime` that was more than 6000 page faults. So malloc gets one stretch
 * of address space on large pages, which saves about an eighth of the processor time from there to the exit. Where the
 * system has none to give, all is as usual.
 */
#include "heap.h"
#include "array.h"
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	STRETCH = 64 << 20,             /* address space; memory only as far as it is touched */
	LIST_MAX = 16 << 20,            /* what is larger gets a mapping of its own */
	SURELY_NEW = 8 << 20,           /* more than what was freed leaves in one piece */
	LARGE_PAGE = 2 << 20,
	CACHE_LINE = 64,
	USUAL_PAD = 128 << 10,
};

static size_t whole(size_t bytes, size_t of)
{
	return (bytes + of - 1) / of * of;
}

void heap_hurry(void)
{
	void *some;
	uintptr_t begin, end;

	mallopt(M_MMAP_THRESHOLD, LIST_MAX);
	mallopt(M_TRIM_THRESHOLD, 2 * STRETCH);         /* less would give it back at once */
	mallopt(M_TOP_PAD, STRETCH);
	some = malloc(SURELY_NEW);
	mallopt(M_TOP_PAD, USUAL_PAD);
	begin = whole((uintptr_t)some, LARGE_PAGE);
	end = (uintptr_t)sbrk(0);
	if (some && begin < end && end - begin <= 2 * (uintptr_t)STRETCH)
		madvise((void *)begin, end - begin, MADV_HUGEPAGE);     /* refused: then not */
	free(some);
}

void *heap_table(size_t bytes)
{
	size_t align = bytes < LARGE_PAGE ? CACHE_LINE : LARGE_PAGE;
	void *at = must(aligned_alloc(align, whole(bytes, align)));

	if (align == LARGE_PAGE)
		madvise(at, bytes, MADV_HUGEPAGE);
	return at;
}
