// cc: -Wno-infinite-recursion
/* longjmp out of deep calls that allocate, again and again, at changing depth */
#include "hostile.h"
#include <setjmp.h>

static jmp_buf back;
static void *kept[64];

__attribute__((noinline)) static int deep(int depth, int leave_at)
{
	char room[64];

	memset(room, depth, sizeof room);
	kept[depth] = realloc(kept[depth], 100 + depth);
	if (depth == leave_at)
		longjmp(back, 1);
	return deep(depth + 1, leave_at) + room[5];
}

int main(void)
{
	volatile int jumps = 0;

	for (volatile int i = 0; i < 20000; i++) {
		if (!setjmp(back))
			deep(0, i % 60);
		else
			jumps++;
	}
	printf("%d jumps, %u\n", jumps, churn(1000));
	return 0;
}
