// cc: -pthread -ldl -rdynamic
/*
 * bind_list.c - forks while another thread reads ld.so's list of modules; the child then looks for a symbol and loads a plugin.
 *
 *   bind_list PLUGIN
 *
 * Nobody but mlprof reads the list here, by the program's own dl_iterate_phdr, which takes its time. ld.so's lock on the list is
 * not one that fork sets right in the child.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int visitor(struct dl_phdr_info *, size_t, void *);

static int (*next)(visitor *, void *);
static volatile int slowly, inside;
static struct { visitor *f; void *argument; } asked;

static int linger(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)unused;
	inside = 1;
	usleep(200000);
	return asked.f(info, size, asked.argument);
}

int dl_iterate_phdr(visitor *f, void *argument)
{
	static int looking;

	if (!next && looking++)         /* mlprof comes from the very look-up */
		return 0;
	if (!next)
		next = (int (*)(visitor *, void *))dlsym(RTLD_NEXT, "dl_iterate_phdr");
	if (!slowly)
		return next(f, argument);
	slowly = 0;
	asked.f = f;
	asked.argument = argument;
	return next(linger, NULL);
}

static void *look(void *unused)
{
	slowly = 1;
	dlsym(RTLD_DEFAULT, "no_such_function");
	inside = 1;
	return unused;
}

static int child(const char *plugin)
{
	void *found;

	alarm(20);
	found = dlsym(RTLD_DEFAULT, "puts");
	return found && dlopen(plugin, RTLD_NOW) ? 0 : 99;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int status = 0;
	pid_t pid;

	(void)argc;
	pthread_create(&thread, NULL, look, NULL);
	while (!inside)
		usleep(1000);
	pid = fork();
	if (pid == 0)
		_exit(child(argv[1]));
	pthread_join(thread, NULL);
	waitpid(pid, &status, 0);
	printf("child: status %d, signal %d\n", WEXITSTATUS(status), WTERMSIG(status));
	return 0;
}
