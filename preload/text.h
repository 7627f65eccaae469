/*
 * text.h - the few string operations a guest needs, without libc: bounded, always ended by NUL.
 */
#ifndef TEXT_H
#define TEXT_H

#include "sys.h"
#include <stdbool.h>

static inline size_t text_length(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

static inline void text_copy(char *to, size_t size, const char *from)
{
	size_t i = 0;

	for (; i + 1 < size && from[i]; i++)
		to[i] = from[i];
	to[i] = 0;
}

static inline void text_append(char *to, size_t size, const char *from)
{
	size_t n = text_length(to);

	if (n < size)
		text_copy(to + n, size - n, from);
}

static inline void text_join(char *to, size_t size, const char *a, const char *b)
{
	text_copy(to, size, a);
	text_append(to, size, b);
}

static inline void text_number(char *to, size_t size, u64 n, u32 base)
{
	char digits[24], *p = digits + sizeof digits - 1;

	*p = 0;
	do {
		*--p = "0123456789abcdef"[n % base];
		n /= base;
	} while (n);
	text_append(to, size, p);
}

/* A key of handles.h: neither 0 nor all ones. */
static inline u64 text_hash(const char *s, size_t n)
{
	u64 h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (u8)s[i]) * 0x100000001b3ull;
	h ^= h >> 29;
	return h && ~h ? h : 1;
}

static inline bool text_starts(const char *s, const char *with)
{
	while (*with)
		if (*s++ != *with++)
			return false;
	return true;
}

static inline bool text_equal(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return *a == *b;
}

#endif
