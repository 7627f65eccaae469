// cc: -ldl
/*
 * probe_host: loads plugins in all ways, and prints whose functions were called. Given: two plugins of different numbers, one that
 * registers itself, and whether p_which is defined here too ("global").
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef long get(void);

__asm__(".symver p_get_old,p_get@V1");
long p_get_old(void);
long p_get(void);

static get *registered[8];
static int registrations;

void host_register(get *f);
void host_register(get *f) { registered[registrations++] = f; }

#ifdef GLOBAL
long p_which(void);
long p_which(void) { return 7; }
#endif

static void *load(const char *path, int flags)
{
	void *handle = dlopen(path, flags);

	if (!handle) {
		printf("%s\n", dlerror());
		exit(9);
	}
	return handle;
}

static long call(void *handle, const char *name)
{
	get *f = (get *)dlsym(handle, name);

	return f ? f() : -1;
}

static void once(const char *one, const char *two, int flags)
{
	void *a = load(one, flags), *b = load(two, flags);

	printf("which %ld %ld", call(a, "p_which"), call(b, "p_which"));
	printf(" ask %ld %ld", call(a, "p_ask"), call(b, "p_ask"));
	printf(" data %ld %ld %ld\n", call(a, "p_ask_data"), call(b, "p_ask_data"), *(long *)dlsym(a, "p_data"));
	dlclose(a);
	dlclose(b);
}

int main(int argc, char **argv)
{
	static const int flags[] = { RTLD_NOW | RTLD_LOCAL, RTLD_LAZY | RTLD_LOCAL, RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND };

	if (argc < 4)
		return 2;
	for (int i = 0; i < 4; i++)
		once(argv[1], argv[2], flags[i]);
	for (int i = 0; i < 5; i++) {                   /* the same place in memory, mostly, again and again */
		void *a = load(i % 2 ? argv[1] : argv[2], RTLD_LAZY);

		printf("again %ld %ld\n", call(a, "p_ask"), call(a, "p_which"));
		dlclose(a);
	}
	load(argv[3], RTLD_LAZY);
	load(argv[1], RTLD_LAZY);                       /* dlopen itself finds what came before */
	printf("registered %d: %ld\n", registrations, registered[0]());
	load(argv[1], RTLD_LAZY | RTLD_GLOBAL);
	printf("default %ld next %ld\n", call(RTLD_DEFAULT, "p_which"), call(RTLD_NEXT, "p_which"));
	printf("versions %ld %ld", p_get_old(), p_get());
	printf(" by dlvsym %ld %ld", ((get *)dlvsym(RTLD_DEFAULT, "p_get", "V1"))(), ((get *)dlvsym(RTLD_DEFAULT, "p_get", "V2"))());
	printf(" none %d\n", dlvsym(RTLD_DEFAULT, "p_get", "V3") == NULL && dlerror());
	return 0;
}
