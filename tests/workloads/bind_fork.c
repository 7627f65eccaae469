// cc: -pthread -ldl
/*
 * bind_fork.c - forks while another thread's dlsym looks through modules that have just come; the child then loads a plugin and runs it.
 *
 *   bind_fork GATE USER PLUGIN ARGUMENTS...         see bind_gate.c; the plugin is a program that was built as a shared object
 *
 * Nobody but mlprof looks for the gate's function: without it the fork happens when the thread is done.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char **word;
static volatile int reached, forked;

static void wait_for(volatile int *what)
{
	while (!*what)
		usleep(1000);
}

static void hold(void)
{
	reached = 1;
	wait_for(&forked);
}

static void *must(void *found)
{
	if (found)
		return found;
	fprintf(stderr, "%s\n", dlerror());
	_exit(99);
}

static void *load(void *unused)
{
	void *gate = must(dlopen(word[1], RTLD_NOW | RTLD_GLOBAL));

	*(void (**)(void))must(dlsym(gate, "gate_reached")) = hold;
	must(dlsym(must(dlopen(word[2], RTLD_LAZY)), "gate_use"));
	reached = 1;
	return unused;
}

static int run_plugin(int argc)
{
	int (*run)(int, char **);

	alarm(30);
	run = (int (*)(int, char **))must(dlsym(must(dlopen(word[3], RTLD_NOW | RTLD_LOCAL)), "plugin_main"));
	return run(argc - 3, word + 3);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int status = 0;
	pid_t child;

	word = argv;
	pthread_create(&thread, NULL, load, NULL);
	wait_for(&reached);
	child = fork();
	forked = 1;
	if (child == 0)
		exit(run_plugin(argc));
	pthread_join(thread, NULL);
	waitpid(child, &status, 0);
	printf("child: status %d, signal %d\n", WEXITSTATUS(status), WTERMSIG(status));
	return 0;
}
