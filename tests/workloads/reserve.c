/*
 * reserve.c - an allocator's habit: reserve much, open a little at a time, close the top again.
 */
#include "expect.h"
#include <sys/mman.h>

enum { STEP = 1 << 20, STEPS = 48 };

int main(void)
{
	size_t reserved = (size_t)8 << 30;
	char *p = mmap(NULL, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		abort();
	for (int i = 0; i < STEPS; i++)
		mprotect(p + (size_t)i * STEP, STEP, PROT_READ | PROT_WRITE);
	for (int i = STEPS - 1; i >= STEPS / 2; i--)
		mprotect(p + (size_t)i * STEP, STEP, PROT_NONE);
	munmap(p + 3 * STEP, 2 * STEP);
	expect("pools.mmap.peak_bytes", (long long)STEPS * STEP);
	expect("pools.mmap.live_at_exit_bytes", (long long)(STEPS / 2 - 2) * STEP);
	expect("peak.bytes", (long long)STEPS * STEP);
	return 0;
}
