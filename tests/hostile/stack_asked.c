/* cc: -pthread */
/* threads whose first allocation is made by libc while it holds their own lock, as those of every Java program */
#include "hostile.h"

static void *ask(void *unused)
{
	pthread_attr_t attributes;
	size_t size = 0;
	void *low = NULL;
	int error = pthread_getattr_np(pthread_self(), &attributes);

	(void)unused;
	pthread_attr_getstack(&attributes, &low, &size);
	pthread_attr_destroy(&attributes);
	return (void *)(uintptr_t)(!error && (char *)&size > (char *)low && (char *)&size < (char *)low + size);
}

int main(void)
{
	pthread_t thread[8];
	void *inside;
	int right = 0;

	alarm(20);
	for (int i = 0; i < 8; i++)
		pthread_create(&thread[i], NULL, ask, NULL);
	for (int i = 0; i < 8; i++) {
		pthread_join(thread[i], &inside);
		right += inside != NULL;
	}
	printf("%d of 8 know their stack\n", right);
	return 0;
}
