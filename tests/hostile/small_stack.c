// cc: -pthread
/* threads with stacks of 16 KiB, and allocation on an alternate signal stack of the least size */
#include "hostile.h"

static volatile unsigned sum;

static void *work(void *unused)
{
	sum += churn(500) != 0;
	return unused;
}

static void handler(int number)
{
	free(used(malloc(200)));
	sum += number == SIGUSR1;
}

static void *on_signal_stack(void *room)
{
	stack_t stack = { .ss_sp = room, .ss_size = MINSIGSTKSZ + 2048 };
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_ONSTACK };

	sigaltstack(&stack, NULL);
	sigaction(SIGUSR1, &action, NULL);
	for (int i = 0; i < 100; i++)
		pthread_kill(pthread_self(), SIGUSR1);
	return NULL;
}

int main(void)
{
	static char room[1 << 16];
	pthread_attr_t attr;
	pthread_t id;

	pthread_attr_init(&attr);
	printf("setstacksize %d\n", pthread_attr_setstacksize(&attr, 16384));
	for (int i = 0; i < 50; i++) {
		if (pthread_create(&id, &attr, work, NULL))
			return 1;
		pthread_join(id, NULL);
	}
	pthread_create(&id, &attr, on_signal_stack, room);
	pthread_join(id, NULL);
	on_signal_stack(room);
	printf("%u\n", sum);
	return 0;
}
