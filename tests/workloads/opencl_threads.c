// cc: -lOpenCL -pthread
/*
 * opencl_threads.c - threads that enqueue at the same time, to queues of their own and to one that they share.
 */
#include "opencl.h"
#include <pthread.h>

enum { THREADS = 4, ROUNDS = 2000 };

static struct cl c;
static cl_command_queue together;
static pthread_barrier_t start;

static void *work(void *unused)
{
	cl_command_queue q;
	cl_kernel k = cl_kernel_of(&c, "scale");
	cl_mem m = cl_buffer(&c, 4096, CL_MEM_READ_WRITE, NULL);
	float by = 1;
	size_t global = 1;

	(void)unused;
	pthread_barrier_wait(&start);
	q = cl_queue(&c, 0);
	MUST(clSetKernelArg(k, 0, sizeof m, &m));
	MUST(clSetKernelArg(k, 1, sizeof by, &by));
	for (int i = 0; i < ROUNDS; i++) {
		cl_event e = NULL;

		MUST(clEnqueueNDRangeKernel(i % 3 ? q : together, k, 1, NULL, &global, NULL, 0, NULL, i % 5 ? NULL : &e));
		if (e && i % 10)
			MUST(clWaitForEvents(1, &e));
		if (e)
			clReleaseEvent(e);
		if (i % 100 == 99)
			MUST(clFinish(q));
	}
	MUST(clFinish(together));
	MUST(clFinish(q));
	clReleaseMemObject(m);
	clReleaseKernel(k);
	clReleaseCommandQueue(q);
	return NULL;
}

int main(void)
{
	pthread_t thread[THREADS];

	c = cl_start();
	together = cl_queue(&c, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
	pthread_barrier_init(&start, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&thread[i], NULL, work, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	expect("kernels.0.calls", THREADS * ROUNDS);
	expect("kernels.0.timed", THREADS * ROUNDS);
	expect("devices.0.allocs", THREADS);
	expect("devices.0.frees", THREADS);
	expect("devices.0.queues", THREADS + 1);
	expect("losses.works_unfinished", 0);
	expect("losses.unknown_ids", 0);
	clReleaseCommandQueue(together);
	cl_stop(&c);
	return 0;
}
