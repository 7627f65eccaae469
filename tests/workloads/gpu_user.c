/*
 * gpu_user.c - a program for CUDA's run-time, or with -DHIP for HIP's: each kind of work and memory, and calls that fail.
 *
 * The library's books say what happened; tests/e2e/accelerators.py compares.
 */
#include "gpu_runtime.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { KB = 1024, MB = 1 << 20, ROUNDS = 4 };

static struct gpu_dim3 grid = { 100, 20, 3 }, block = { 32, 4, 2 }, one = { 1, 1, 1 };
static void *compute, *copies;

/* What a compiler makes of kernels for the host: their addresses are what launches go by. */
__attribute__((noinline)) void saxpy(void) { __asm__ volatile("nop" : : : "memory"); }
__attribute__((noinline)) void relu(void) { __asm__ volatile("nop; nop" : : : "memory"); }
__attribute__((noinline)) void unseen_kernel(void) { __asm__ volatile("nop; nop; nop" : : : "memory"); }

static void register_kernels(void)
{
	GPU_HIDDEN(RegisterFunction)(NULL, (const char *)saxpy, NULL, "_Z5saxpyifPKfPf", -1, NULL, NULL, NULL, NULL, NULL);
	GPU_HIDDEN(RegisterFunction)(NULL, (const char *)relu, NULL, "relu", -1, NULL, NULL, NULL, NULL, NULL);
}

#ifndef BY_DLSYM
__attribute__((constructor)) static void module_constructor(void) { register_kernels(); }
#endif

static int launch(void (*kernel)(void), int us, void *stream)
{
	void *args[1] = { NULL };

	return GPU(LaunchKernel)((const void *)kernel, grid, block, args, (size_t)us, stream);
}

static void streams(void)
{
	GPU(StreamCreate)(&compute);
	GPU(StreamCreate)(&copies);
#ifdef HIP
	roctxNameHipStream("compute", compute);
	roctxNameHipStream("copies", copies);
#else
	nvtxNameCudaStreamA(compute, "compute");
	nvtxNameCudaStreamA(copies, "copies");
#endif
}

static void rounds(char *x, char *y, char *pinned)
{
	for (int i = 0; i < ROUNDS; i++) {
		launch(saxpy, 3000, compute);
		GPU(MemcpyAsync)(y, pinned, 64 * KB, GPU_H2D, copies);
		launch(relu, 1000, copies);
		GPU(MemsetAsync)(x, i, 32 * KB, copies);
		GPU(StreamSynchronize)(compute);
		GPU(StreamSynchronize)(copies);
	}
}

/* The second kernel runs on when the event is reached. */
static void events(void)
{
	void *event, *never;
	int early;

	GPU(EventCreate)(&event);
	GPU(EventCreate)(&never);
	launch(relu, 2000, compute);
	GPU(EventRecord)(event, compute);
	launch(saxpy, 40000, compute);
	GPU(EventSynchronize)(never);
	GPU(EventSynchronize)(event);
	early = GPU(StreamQuery)(compute);
	GPU(EventRecord)(event, compute);
	while (GPU(EventQuery)(event))
		usleep(1000);
	printf("before the end %d, after it %d\n", early, GPU(StreamQuery)(compute));
}

static void graphs(void)
{
	void *graph;

	GPU(StreamBeginCapture)(compute, 0);
	launch(relu, 1000, compute);
	launch(relu, 1000, compute);
	GPU(StreamEndCapture)(compute, &graph);
	GPU(GraphLaunch)(graph, compute);
	GPU(DeviceSynchronize)();
}

/* What is called otherwise: by a handle, with a struct, without anybody having said a name. The handle of a stream comes again. */
static void other_launches(void)
{
	void *again, *args[1] = { NULL };
#ifndef HIP
	struct gpu_launch_config config = { .grid = { 7, 6, 5 }, .block = { 4, 3, 2 }, .shared = 500, .stream = compute };
	void *kernel;

	__cudaGetKernel(&kernel, (const void *)saxpy);
	cudaLaunchKernel(kernel, grid, block, args, 500, compute);
	cudaLaunchKernelExC(&config, (const void *)relu, args);
	cudaStreamSynchronize(compute);
#endif
	GPU(LaunchKernel)((const void *)unseen_kernel, one, one, args, 500, NULL);
	GPU(StreamDestroy)(copies);
	GPU(StreamCreate)(&again);
	printf("again %d\n", again == copies);
	launch(relu, 500, again);
	GPU(DeviceSynchronize)();
}

static void failures(void)
{
	struct gpu_dim3 much = { 64, 64, 1 };
	void *none = NULL;

	printf("too much %d\n", GPU(Malloc)(&none, 1ul << 40));
	printf("too large %d\n", GPU(LaunchKernel)((const void *)relu, grid, much, NULL, 0, compute));
	printf("no direction %d\n", GPU(Memcpy)(&much, &grid, sizeof(grid), 9));
	printf("nobody's %d\n", GPU(Free)(&none));
	GPU(Free)(NULL);
}

int main(void)
{
	static char host[MB];
	void *x, *y, *z, *rows, *pinned;
	size_t pitch;

#ifdef BY_DLSYM
	gpu_find(BY_DLSYM);
	register_kernels();
#endif
	streams();
	GPU(Malloc)(&x, 3 * MB);
	GPU(Malloc)(&y, MB);
	GPU(MallocPitch)(&rows, &pitch, 100, 30);
#ifdef HIP
	hipHostMalloc(&pinned, 5 * MB, 0);
#else
	cudaMallocHost(&pinned, 5 * MB);
#endif
	memset(host, 7, sizeof(host));
	memset(pinned, 1, 5 * MB);
	for (int i = 0; i < 3; i++)
		GPU(Memcpy)(x, host, 100000, GPU_H2D);
	GPU(Memcpy2D)(rows, pitch, host, 100, 100, 30, GPU_H2D);
	launch(relu, 3000, NULL);
	GPU(Memcpy)(y, x, 1000, GPU_D2D);
	GPU(DeviceSynchronize)();
	rounds(x, y, pinned);
	GPU(MallocAsync)(&z, 2 * MB, compute);
	events();
	GPU(FreeAsync)(z, compute);
	graphs();
	other_launches();
	failures();
	GPU(Memset)(y, 3, MB);
	GPU(Memcpy)(host, y, 5000, GPU_D2H);
	printf("read %d %d\n", host[0], host[4999]);
	GPU(Free)(x);
	GPU(Free)(rows);
#ifdef HIP
	hipHostFree(pinned);
#else
	cudaFreeHost(pinned);
#endif
	gpu_books();
	return 0;                       /* y is never freed */
}
