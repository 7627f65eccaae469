/* cc: -pthread -ldl */
/*
 * table_user.c - calls what table_lib.c has in its tables, also from threads, from a child, and after the library was loaded again:
 * table_user LIBRARY COPY
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, CALLS = 200 };

typedef long number(void);
struct base { const struct api *(*get)(unsigned version); number *one; };
struct api { long (*add)(long a, long b); const char *(*text)(const char *what); double (*mul)(double a, double b); };
struct sized { size_t size; number *f[3]; };
struct methods { number *one; void *none; double (*sum)(void *, int, int, int, int, int, int, int, double, int); };

static void *library;
static const struct base *(*get_base)(void);

static void *find(const char *name)
{
	void *f = dlsym(library, name);

	if (!f)
		exit(3);
	return f;
}

/* What /proc says of the page of an address: "r--p". */
static const char *protection(const void *at)
{
	static char mode[8];
	unsigned long low, high;
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");

	while (maps && fgets(line, sizeof line, maps))
		if (sscanf(line, "%lx-%lx %7s", &low, &high, mode) == 3 && low <= (unsigned long)at && (unsigned long)at < high)
			break;
	fclose(maps);
	return mode;
}

/* The first one to ask may be any of them. */
static void *in_thread(void *sum)
{
	const struct api *api = get_base()->get(2);

	for (int i = 0; i < CALLS; i++)
		*(long *)sum += api->add(i, 1);
	return NULL;
}

static void threads(void)
{
	pthread_t t[THREADS];
	long sum[THREADS] = { 0 }, all = 0;

	for (int i = 0; i < THREADS; i++)
		pthread_create(&t[i], NULL, in_thread, &sum[i]);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], NULL);
		all += sum[i];
	}
	printf("threads %ld\n", all);
}

static void versions(void)
{
	const struct base *base = get_base();
	const struct api *old = base->get(1), *new = base->get(2);

	printf("same %d %d %d, other %d, none %d\n", base == get_base(), old == base->get(1), new == base->get(2), old != new, !base->get(9));
	printf("old %ld %s %d\n", old->add(2, 3), old->text("one"), old->mul == NULL);
	printf("new %ld %s %g\n", new->add(20, 30), new->text("two"), new->mul(1.5, 4));
	printf("null %s\n", new->text(NULL));
	printf("protection %s %s\n", protection(base), protection(new));
}

static void others(void)
{
	const struct sized *(*sized)(int) = find("tab_sized");
	number **(*heap)(void) = find("tab_heap"), **(*locked)(void) = find("tab_locked");
	struct methods **(*object)(void) = find("tab_object");
	const struct sized *s = sized(0), *whole = sized(1);

	printf("sized %ld %ld %ld %d\n", s->f[0](), s->f[1](), s->f[2](), sized(2) == NULL);
	printf("whole %ld %ld %ld\n", whole->f[0](), whole->f[1](), whole->f[2]());
	printf("heap %ld %d\n", heap()[0](), heap()[1] == NULL);
	printf("locked %ld %s\n", locked()[0](), protection(locked()));
	printf("object %ld %g\n", (*object())->one(), (*object())->sum(object(), 1, 2, 3, 4, 5, 6, 7, 0.5, 9));
}

static void child(void)
{
	int status = 0;

	fflush(stdout);
	if (!fork()) {
		printf("child %ld\n", get_base()->get(1)->add(1, 1));
		fflush(stdout);
		_exit(0);
	}
	wait(&status);
	printf("status %d\n", status);
}

static void use(void *opened)
{
	library = opened;
	get_base = find("tab_base");
	threads();
	versions();
	others();
	child();
	((void (*)(void))find("tab_books"))();
}

int main(int argc, char **argv)
{
	for (int round = 0; round < 2 && argc > 2; round++) {
		void *one = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL), *two = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);

		if (!one || !two)
			return 2;
		use(one);
		use(two);
		dlclose(one);
		dlclose(two);
	}
	return 0;
}
