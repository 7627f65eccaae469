/* leaves its directory, which then goes away */
#include "hostile.h"

int main(void)
{
	char name[] = "/tmp/hostile.XXXXXX";

	mkdtemp(name);
	chdir(name);
	rmdir(name);
	churn(50000);
	printf("getcwd: %s\n", getcwd(name, sizeof name) ? name : strerror(errno));
	return 0;
}
