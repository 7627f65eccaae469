// cc: -pthread
/* handlers that allocate: SIGPROF storms in four threads and SIGALRM in the middle of whatever runs */
#include "hostile.h"
#include <sys/time.h>

static volatile sig_atomic_t in_malloc, handled[2];

/* Takes memory only when the program is not inside malloc: the rest would be the program's own mistake. */
static void handler(int number)
{
	int error = errno;

	handled[number == SIGALRM]++;
	if (!in_malloc)
		free(used(malloc(100)));
	errno = error;
}

static unsigned careful(int rounds)
{
	unsigned sum = 0;

	for (int i = 0; i < rounds; i++) {
		char *p;

		in_malloc = 1;
		p = malloc(64 + i % 64);
		in_malloc = 0;
		memset(p, 1, 64);
		sum += p[63];
		in_malloc = 1;
		free(p);
		in_malloc = 0;
	}
	return sum;
}

static void *busy(void *unused)
{
	for (int i = 0; i < 300; i++)
		churn(100);
	return unused;
}

int main(void)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct itimerval often = { { 0, 150 }, { 0, 150 } }, never = { 0 };
	pthread_t id[3];
	sigset_t set;
	unsigned sum = 0;

	sigemptyset(&set);
	sigaddset(&set, SIGPROF);
	sigaddset(&set, SIGALRM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);         /* the helpers only make noise */
	for (int i = 0; i < 3; i++)
		pthread_create(&id[i], NULL, busy, NULL);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	sigaction(SIGPROF, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_PROF, &often, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 200 || handled[0] < 20 || handled[1] < 20; i++)
		sum += careful(1000) == 1000;
	setitimer(ITIMER_PROF, &never, NULL);
	setitimer(ITIMER_REAL, &never, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(id[i], NULL);
	printf("%s, handlers ran: %d %d\n", sum >= 200 ? "good" : "bad", handled[0] >= 20, handled[1] >= 20);
	return 0;
}
