/* SIGALRM hits allocation code every 60 us; the handler kills nothing, checks errno and the stack */
#include "hostile.h"
#include <sys/time.h>

static volatile sig_atomic_t ticks;

static void handler(int number)
{
	char room[4096];

	(void)number;
	memset(room, 0x5a, sizeof room);
	__asm__ volatile("" : : "r"(room) : "memory");
	ticks++;
	errno = 77;                             /* rude: whoever is interrupted sees it unless it put its own back */
}

int main(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 60 }, { 0, 60 } };
	unsigned sum = 0;

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 100 || ticks < 300; i++)
		sum |= churn(2550) ^ churn(2550);
	printf("same: %d, ticks: %d\n", sum == 0, ticks >= 300);
	return 0;
}
