// cc: -lOpenCL
/*
 * opencl_ends.c WAY - ends while the device is at work: return, exit, _exit, kill, fork (the child uses nothing of it).
 */
#include "opencl.h"
#include <signal.h>
#include <sys/wait.h>

int main(int argc, char **argv)
{
	const char *way = argc > 1 ? argv[1] : "exit";
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, 0);
	cl_kernel k = cl_kernel_of(&c, "spin");
	cl_mem m = cl_buffer(&c, 1 << 16, CL_MEM_READ_WRITE, NULL);
	int rounds = 1;
	size_t global = 64;

	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof rounds, &rounds));
	/* Built now: a worker that is still compiling when the compiler's own destructors run may crash, whoever looks on. */
	MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL));
	MUST(clFinish(q));
	rounds = 20000000;
	MUST(clSetKernelArg(k, 1, sizeof rounds, &rounds));
	for (int i = 0; i < 3; i++)
		MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL));
	MUST(clFlush(q));
	say("enqueued 3\n");
	if (!strcmp(way, "fork")) {
		pid_t child = fork();

		if (!child) {
			free(used(malloc(100)));
			_exit(7);
		}
		waitpid(child, &rounds, 0);
		_exit(WEXITSTATUS(rounds));
	}
	if (!strcmp(way, "_exit"))
		_exit(3);
	if (!strcmp(way, "kill"))
		kill(getpid(), SIGKILL);
	exit(4);
}
