// cc: -shared -fPIC
/* what dlopen_loop.c loads: allocates in its constructor and destructor */
#include <stdlib.h>
#include <string.h>

static char *kept;

__attribute__((constructor)) static void start(void)
{
	kept = malloc(5000);
	memset(kept, 1, 5000);
}

__attribute__((destructor)) static void end(void)
{
	free(kept);
	kept = malloc(30);
	free(kept);
}

int plugin_sum(int n)
{
	char *p = calloc(n, 1);
	int sum = kept[n % 5000] + p[n - 1];

	free(p);
	return sum;
}
