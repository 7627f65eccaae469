/* allocation in constructors, in atexit handlers, in late destructors, and at quick_exit */
#include "hostile.h"

static char *early;

__attribute__((constructor(101))) static void first(void) { early = malloc(100); strcpy(early, "early"); }
__attribute__((destructor(101))) static void last(void)
{
	free(early);
	early = malloc(2000);
	churn(100);
	dprintf(1, "last destructor\n");
}

static void at_exit(void)
{
	free(used(malloc(500)));
	dprintf(1, "atexit, %u\n", churn(300));
}

int main(int argc, char **argv)
{
	atexit(at_exit);
	at_quick_exit(at_exit);
	printf("%s\n", early);
	fflush(stdout);
	if (argc > 1)
		quick_exit(12);
	exit(13);
}
