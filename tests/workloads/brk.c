/*
 * brk.c - memory that the program takes with sbrk() itself.
 */
#include "expect.h"

int main(void)
{
	if (sbrk(256 << 10) == (void *)-1)
		abort();
	sbrk(-(64 << 10));
	expect("peak.bytes", 256 << 10);
	return 0;
}
