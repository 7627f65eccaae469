/*
 * memory.c - memcpy, strlen and their kin for ourselves.
 *
 * Compilers call them, and libc's use vector registers, whose upper parts a probed function may hold its arguments or
 * its result in (probe_x86_64.S). They are small: what is copied here is short, or rare.
 */
#include "sys.h"

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int byte, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);

typedef u64 any_word __attribute__((aligned(1), may_alias));

enum { LONG = 256 };                    /* from here on the string instructions pay */

void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	char *t = to;
	const char *f = from;

	if (n >= LONG) {
		__asm__ volatile("rep movsb" : "+D"(t), "+S"(f), "+c"(n) : : "memory");
		return to;
	}
	for (; n >= 8; n -= 8, t += 8, f += 8)
		*(any_word *)t = *(const any_word *)f;
	for (; n; n--)
		*t++ = *f++;
	return to;
}

void *memmove(void *to, const void *from, size_t n)
{
	char *t = to;
	const char *f = from;

	if (t <= f || t >= f + n) {
		for (; n; n--)
			*t++ = *f++;
		return to;
	}
	while (n--)
		t[n] = f[n];
	return to;
}

void *memset(void *to, int byte, size_t n)
{
	void *t = to;

	__asm__ volatile("rep stosb" : "+D"(t), "+c"(n) : "a"(byte) : "memory");
	return to;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const u8 *x = a, *y = b;

	for (; n; n--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}
