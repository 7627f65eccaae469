/*
 * array.h - arrays that grow, and memory that is there or the collector is not.
 */
#ifndef ARRAY_H
#define ARRAY_H

#include <mlprof/wire.h>
#include <stdlib.h>
#include <string.h>

static inline void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static inline void *new_zeroed(size_t n, size_t size)
{
	return must(calloc(n ? n : 1, size));
}

/* `at` with room for at least `need` elements; `cap` follows. */
static inline void *array_room(void *at, u32 *cap, size_t need, size_t size)
{
	size_t n = *cap ? *cap : 8;

	if (need <= *cap)
		return at;
	while (n < need)
		n += n / 2;
	*cap = n;
	return must(realloc(at, n * size));
}

#define ARRAY_ROOM(at, cap, need) ((at) = array_room((at), &(cap), (need), sizeof(*(at))))

static inline char *text_copy(const char *text, size_t len)
{
	char *copy = must(malloc(len + 1));

	memcpy(copy, text, len);
	copy[len] = 0;
	return copy;
}

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

#endif
