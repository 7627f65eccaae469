/* run set-user-id nobody: says who it is */
#include "hostile.h"

int main(void)
{
	printf("uid differs: %d, LD_PRELOAD seen: %d\n", getuid() != geteuid(), getenv("LD_PRELOAD") != NULL);
	return churn(100) == 0;
}
