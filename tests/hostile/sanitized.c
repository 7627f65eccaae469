/* sanitized.c - for AddressSanitizer, which refuses to run when another library comes before its own. */
#include "hostile.h"

int main(void)
{
	char *p = malloc(100);

	p[99] = 1;
	printf("%d\n", p[99]);
	free(p);
	return 3;
}
