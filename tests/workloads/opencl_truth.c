// cc: -lOpenCL
/*
 * opencl_truth.c - knows its kernels' times by its own events, and its buffers by its own books.
 *
 * Prints "kernel NAME CALLS NS" from the device's own stamps, "work START END" of each in the order of its queue, and what
 * is expected of the first device's memory.
 */
#include "opencl.h"

enum { N = 1 << 14, ROUNDS = 20, BUFFERS = 40 };

static long long own_time(cl_event e, cl_profiling_info what)
{
	cl_ulong t;

	MUST(clGetEventProfilingInfo(e, what, sizeof t, &t, NULL));
	return (long long)t;
}

static void run(cl_command_queue q, cl_kernel k, const char *name)
{
	size_t global = N, local = 64;
	cl_event e[ROUNDS];
	long long total = 0;

	for (int i = 0; i < ROUNDS; i++)
		MUST(clEnqueueNDRangeKernel(q, k, 1, NULL, &global, &local, 0, NULL, &e[i]));
	MUST(clFinish(q));
	for (int i = 0; i < ROUNDS; i++) {
		long long start = own_time(e[i], CL_PROFILING_COMMAND_START), end = own_time(e[i], CL_PROFILING_COMMAND_END);

		say("work %s %lld %lld\n", name, start, end);
		total += end - start;
		clReleaseEvent(e[i]);
	}
	say("kernel %s %d %lld\n", name, ROUNDS, total);
}

static void memory(const struct cl *c, struct books *b)
{
	uint64_t state = 1;
	cl_mem m[BUFFERS] = { 0 };
	size_t bytes[BUFFERS];
	static char host[4096] __attribute__((aligned(4096)));
	cl_buffer_region region = { 0, 1024 };
	cl_int error;

	for (int i = 0; i < 400; i++) {
		int j = dice(&state) % BUFFERS;

		if (m[j]) {
			clReleaseMemObject(m[j]);
			books_free(b, bytes[j]);
			m[j] = NULL;
			continue;
		}
		bytes[j] = 4096 + dice(&state) % 100000;
		m[j] = cl_buffer(c, bytes[j], CL_MEM_READ_WRITE, NULL);
		books_alloc(b, bytes[j]);
	}
	for (int j = 0; j < BUFFERS; j++)
		if (m[j]) {
			clReleaseMemObject(m[j]);
			books_free(b, bytes[j]);
		}
	/* Neither of these has bytes of its own. */
	m[0] = cl_buffer(c, sizeof host, CL_MEM_USE_HOST_PTR, host);
	m[1] = clCreateSubBuffer(m[0], CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION, &region, &error);
	MUST(error);
	clReleaseMemObject(m[1]);
	clReleaseMemObject(m[0]);
}

int main(void)
{
	struct cl c = cl_start();
	cl_command_queue q = cl_queue(&c, CL_QUEUE_PROFILING_ENABLE);
	cl_kernel scale = cl_kernel_of(&c, "scale"), spin = cl_kernel_of(&c, "spin");
	struct books b = { 0 };
	float *host = calloc(N, sizeof *host), by = 2;
	cl_mem m = cl_buffer(&c, N * sizeof *host, CL_MEM_READ_WRITE, NULL), leaked;
	int rounds = 300;

	books_alloc(&b, N * sizeof *host);
	MUST(clEnqueueWriteBuffer(q, m, CL_TRUE, 0, N * sizeof *host, host, 0, NULL, NULL));
	MUST(clSetKernelArg(scale, 0, sizeof m, &m));
	MUST(clSetKernelArg(scale, 1, sizeof by, &by));
	MUST(clSetKernelArg(spin, 0, sizeof m, &m));
	MUST(clSetKernelArg(spin, 1, sizeof rounds, &rounds));
	run(q, scale, "scale");
	run(q, spin, "spin");
	memory(&c, &b);
	MUST(clEnqueueReadBuffer(q, m, CL_TRUE, 0, N * sizeof *host, host, 0, NULL, NULL));
	say("result %.6g\n", host[7]);
	clReleaseMemObject(m);
	books_free(&b, N * sizeof *host);
	leaked = cl_buffer(&c, 12345, CL_MEM_READ_ONLY, NULL);
	(void)leaked;
	books_alloc(&b, 12345);
	expect("devices.0.peak_bytes", b.peak);
	expect("devices.0.allocs", b.allocs);
	expect("devices.0.frees", b.frees);
	expect("devices.0.live_at_exit_bytes", b.live);
	expect("devices.0.kernels", 2 * ROUNDS);
	clReleaseKernel(scale);
	clReleaseKernel(spin);
	clReleaseCommandQueue(q);
	free(host);
	return 0;
}
