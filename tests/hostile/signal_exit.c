/* a handler that leaves by siglongjmp or _exit from the middle of an allocation */
#include "hostile.h"
#include <setjmp.h>
#include <sys/time.h>

static sigjmp_buf back;
static volatile sig_atomic_t idle;

/* Only out of code that holds no lock of malloc: with M_ARENA 1 and one thread malloc takes none. */
static void leave(int number)
{
	(void)number;
	if (idle)
		siglongjmp(back, 1);
}

int main(void)
{
	struct sigaction action = { .sa_handler = leave };
	struct itimerval often = { { 0, 300 }, { 0, 300 } };
	volatile int jumps = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	if (sigsetjmp(back, 1))
		jumps++;
	while (jumps < 500) {
		idle = 0;
		churn(20);
		idle = 1;
		for (volatile int i = 0; i < 3000; i++)
			;
	}
	idle = 0;
	printf("%d jumps\n", jumps);
	fflush(stdout);
	raise(SIGTERM);
	return 0;
}
