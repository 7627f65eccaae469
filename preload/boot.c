/*
 * boot.c - memory for dlsym, while it looks the real malloc up.
 *
 * A bump allocator over a static area (untouched pages cost nothing). Each block has its size in front,
 * so that a realloc of it can be served later; a block is recognised for ever and never given back.
 */
#include "hook.h"

enum { BOOT_BYTES = 1 << 20, BOOT_ALIGN = 16 };

static char area[BOOT_BYTES] __attribute__((aligned(4096)));
static u64 taken;

void *boot_alloc(size_t n, size_t align)
{
	u64 from, at, end;

	if (align < BOOT_ALIGN)
		align = BOOT_ALIGN;
	if (n > BOOT_BYTES || align > BOOT_BYTES)
		return NULL;
	from = __atomic_load_n(&taken, __ATOMIC_RELAXED);
	do {
		at = (from + sizeof(u64) + align - 1) & ~(u64)(align - 1);
		end = at + n;
		if (end > BOOT_BYTES)
			return NULL;
	} while (!__atomic_compare_exchange_n(&taken, &from, end, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	((u64 *)(area + at))[-1] = n;
	return area + at;
}

bool boot_owns(const void *p)
{
	return (u64)p - (u64)area < BOOT_BYTES;
}

size_t boot_size(const void *p)
{
	return ((const u64 *)p)[-1];
}
