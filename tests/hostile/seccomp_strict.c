/* SECCOMP_MODE_STRICT: anything but read, write and exit kills */
#include "hostile.h"
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int main(void)
{
	char text[32];
	void *p[100];
	unsigned sum = 0;

	for (int i = 0; i < 100; i++)
		p[i] = malloc(100);
	prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
	for (int round = 0; round < 100; round++)
		for (int i = 0; i < 100; i++) {
			free(p[i]);
			p[i] = malloc(100);
			sum += p[i] != NULL;
		}
	write(1, text, snprintf(text, sizeof text, "%u\n", sum));
	syscall(__NR_exit, 5);
	return 0;
}
