// cc: -lOpenCL
/*
 * opencl_faults.c - devices that refuse, fail and are lost (the stand-in driver): prints every error that it sees.
 */
#include "opencl.h"

static int failed, well;

static void CL_CALLBACK on_end(cl_event e, cl_int status, void *user)
{
	(void)e;
	*(cl_int *)user = status;
}

static cl_int status_of(cl_event e)
{
	cl_int status = 77;

	MUST(clGetEventInfo(e, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL));
	return status;
}

static void enqueue(const struct cl *c, cl_command_queue q, const char *name, int with_event)
{
	cl_kernel k = cl_kernel_of(c, name);
	size_t global = 16;
	cl_event e = NULL;
	cl_int r = clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, with_event ? &e : NULL), told = 99, waited;

	say("%s: %d\n", name, r);
	if (e) {
		cl_ulong t;

		clSetEventCallback(e, CL_COMPLETE, on_end, &told);
		waited = clWaitForEvents(1, &e);
		while (__atomic_load_n(&told, __ATOMIC_SEQ_CST) == 99)
			usleep(100);
		say("  waited %d, status %d, told %d, times %d\n", waited, status_of(e), told,
		    clGetEventProfilingInfo(e, CL_PROFILING_COMMAND_END, sizeof t, &t, NULL));
		clReleaseEvent(e);
	}
	clReleaseKernel(k);
	if (r || !strncmp(name, "fail", 4) || !strcmp(name, "lost"))
		failed++;
	else
		well++;
}

static void memory(const struct cl *c)
{
	cl_int error = 77;
	cl_mem m = clCreateBuffer(c->context, CL_MEM_READ_WRITE, 3ul << 30, NULL, &error);

	say("3 GiB: %d %d\n", m != NULL, error);
	m = clCreateBuffer(c->context, CL_MEM_READ_WRITE, 3ul << 30, NULL, NULL);
	say("3 GiB, without asking why: %d\n", m != NULL);
}

static void lose(const struct cl *c, cl_command_queue q)
{
	cl_mem m = cl_buffer(c, 4096, CL_MEM_READ_WRITE, NULL);
	cl_kernel held = cl_kernel_of(c, "held"), k = cl_kernel_of(c, "lost"), tail = cl_kernel_of(c, "busy_1");
	size_t global = 1;
	char host[64];

	/* in a row, so that what is behind it is in the queue when the device is lost */
	say("held %d\n", clEnqueueNDRangeKernel(q, held, 1, NULL, &global, NULL, 0, NULL, NULL));
	say("lost %d\n", clEnqueueNDRangeKernel(q, k, 1, NULL, &global, NULL, 0, NULL, NULL));
	for (int i = 0; i < 3; i++)
		say("behind %d\n", clEnqueueNDRangeKernel(q, tail, 1, NULL, &global, NULL, 0, NULL, NULL));
	well++;
	failed += 4;
	say("finish %d\n", clFinish(q));
	enqueue(c, q, "busy_1", 0);
	enqueue(c, q, "busy_1", 1);
	say("read %d, marker %d\n", clEnqueueReadBuffer(q, m, CL_TRUE, 0, sizeof host, host, 0, NULL, NULL),
	    clEnqueueMarkerWithWaitList(q, 0, NULL, NULL));
	failed += 2;
	clReleaseMemObject(m);
	clReleaseKernel(held);
	clReleaseKernel(k);
	clReleaseKernel(tail);
}

int main(void)
{
	static const char *const names[] = { "busy_5", "refuse_5", "refuse_2", "refuse_4", "fail_5", "fail_14", "fail_9999" };
	struct cl c = cl_start();

	for (int profiled = 0; profiled < 2; profiled++) {
		cl_command_queue q = cl_queue(&c, profiled ? CL_QUEUE_PROFILING_ENABLE : 0);

		for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
			for (int with_event = 0; with_event < 2; with_event++)
				enqueue(&c, q, names[i], with_event);
		say("finish %d\n", clFinish(q));
		clReleaseCommandQueue(q);
	}
	memory(&c);
	lose(&c, cl_queue(&c, 0));
	expect("losses.works_failed", failed);
	expect("devices.0.works_timed", well);
	expect("losses.works_unfinished", 0);
	expect("losses.works_untimed", 0);
	expect("devices.0.allocs", 1);
	cl_stop(&c);
	return 0;
}
