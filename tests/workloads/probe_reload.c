// cc: -pthread -ldl
/*
 * probe_reload: threads load plugins (-DPLUGIN=number makes one), call them and unload them, all at once, and print what they called.
 * A plugin's outer() calls its own inner() through its PLT, so what is seen of that hangs on the plugin being bound in time.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef PLUGIN
int r_inner(int x);
int r_outer(int x);

int r_inner(int x) { return 10 * x + PLUGIN; }
int r_outer(int x) { return r_inner(x) + 1; }
#else

enum { THREADS = 4, ROUNDS = 200, PLUGINS = 3 };

static const int modes[] = { RTLD_LAZY, RTLD_NOW, RTLD_LAZY | RTLD_DEEPBIND, RTLD_NOW | RTLD_DEEPBIND };
static atomic_long calls[PLUGINS];
static char **paths;

static void *work(void *seed)
{
	unsigned random = (unsigned)(unsigned long)seed;

	for (int i = 0; i < ROUNDS; i++) {
		int plugin = rand_r(&random) % PLUGINS;
		void *handle = dlopen(paths[plugin], modes[rand_r(&random) % 4]);
		int (*outer)(int) = handle ? (int (*)(int))dlsym(handle, "r_outer") : NULL;

		if (!outer || outer(i) != 10 * i + plugin + 1 + 1) {
			printf("wrong\n");
			exit(1);
		}
		calls[plugin]++;
		dlclose(handle);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread[THREADS];

	if (argc != 1 + PLUGINS)
		return 2;
	paths = argv + 1;
	for (unsigned long i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, (void *)(i + 1));
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < PLUGINS; i++)
		printf("%ld ", calls[i]);
	return 0;
}
#endif
