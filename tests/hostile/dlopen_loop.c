// cc: -ldl -pthread
/* dlopen and dlclose in a loop, with allocation inside, while another thread allocates */
#include "hostile.h"
#include <dlfcn.h>

static volatile int stop;

static void *noise(void *unused)
{
	while (!stop)
		churn(100);
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t id;
	int sum = 0;

	pthread_create(&id, NULL, noise, NULL);
	for (int i = 0; i < 500; i++) {
		void *library = dlopen(argv[1], i % 2 ? RTLD_NOW | RTLD_LOCAL : RTLD_LAZY | RTLD_GLOBAL);
		int (*f)(int) = library ? (int (*)(int))dlsym(library, "plugin_sum") : NULL;

		if (!f)
			return printf("%s\n", dlerror());
		sum += f(100 + i);
		dlclose(library);
	}
	stop = 1;
	pthread_join(id, NULL);
	printf("%d, missing: %d %d\n", sum, dlopen("/no/such.so", RTLD_NOW) == NULL, dlsym(RTLD_DEFAULT, "plugin_sum") == NULL);
	return argc != 2;
}
