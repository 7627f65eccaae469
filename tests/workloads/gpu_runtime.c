/* cc: -shared -fPIC -pthread */
/*
 * gpu_runtime.c - stands in for libcudart.so and, with -DHIP, for libamdhip64.so: see gpu_runtime.h and gpu_core.h.
 *
 * A kernel takes as many microseconds as its launch asks for bytes of shared memory.
 */
#include "gpu_runtime.h"

#include "gpu_core.h"

enum { KERNELS = 16, EVENTS = 16, CAPTURED = 8 };

static struct { const void *function; const char *name; } kernel[KERNELS];
static struct { int stream, before; } event[EVENTS];
static struct { struct gpu_item item[CAPTURED]; int items; } graph;
static int kernels, events;

/* ---- memory ------------------------------------------------------------------------------- */

int GPU(Malloc)(void **to, size_t bytes) { return gpu_alloc(to, bytes, GPU_DEVICE); }
int GPU(MallocAsync)(void **to, size_t bytes, void *stream) { return stream ? gpu_alloc(to, bytes, GPU_DEVICE) : 1; }
int GPU(Free)(void *at) { return gpu_free(at, GPU_DEVICE); }
int GPU(FreeAsync)(void *at, void *stream) { return stream ? gpu_free(at, GPU_DEVICE) : 1; }

int GPU(MallocPitch)(void **to, size_t *pitch, size_t width, size_t height)
{
	*pitch = (width + 511) / 512 * 512;
	return gpu_alloc(to, *pitch * height, GPU_DEVICE);
}

#ifdef HIP
int hipHostMalloc(void **to, size_t bytes, unsigned flags) { return flags ? 1 : gpu_alloc(to, bytes, GPU_PINNED); }
int hipHostFree(void *at) { return gpu_free(at, GPU_PINNED); }
#else
int cudaMallocHost(void **to, size_t bytes) { return gpu_alloc(to, bytes, GPU_PINNED); }
int cudaFreeHost(void *at) { return gpu_free(at, GPU_PINNED); }
#endif

/* ---- work --------------------------------------------------------------------------------- */

static int put(struct gpu_item item, void *stream)
{
	item.stream = gpu_number(stream);
	if (gpu_stream[item.stream].captures)
		graph.item[graph.items++] = item;
	else
		gpu_put(item);
	return 0;
}

static const char *copy_name(int kind)
{
	static const char *const name[] = { "h2h", "h2d", "d2h", "d2d" };

	return kind >= 0 && kind < 4 ? name[kind] : NULL;
}

int GPU(MemcpyAsync)(void *to, const void *from, size_t bytes, int kind, void *stream)
{
	const char *name = copy_name(kind);

	return name ? put((struct gpu_item) { .name = name, .to = to, .from = from, .bytes = bytes }, stream) : 21;
}

int GPU(Memcpy)(void *to, const void *from, size_t bytes, int kind)
{
	int error = GPU(MemcpyAsync)(to, from, bytes, kind, NULL);

	if (kind != GPU_D2D)            /* the host's memory is not in it */
		gpu_wait(0, GPU_ITEMS);
	return error;
}

int GPU(Memcpy2D)(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind)
{
	for (size_t y = 0; y < height; y++)
		memcpy((char *)to + y * to_pitch, (const char *)from + y * from_pitch, width);
	put((struct gpu_item) { .name = copy_name(kind), .bytes = width * height }, NULL);
	gpu_wait(0, GPU_ITEMS);
	return 0;
}

int GPU(MemsetAsync)(void *at, int value, size_t bytes, void *stream)
{
	return put((struct gpu_item) { .name = "fill", .to = at, .fill = value, .bytes = bytes }, stream);
}

int GPU(Memset)(void *at, int value, size_t bytes) { return GPU(MemsetAsync)(at, value, bytes, NULL); }

int GPU_HIDDEN(RegisterFunction)(void **module, const char *function, char *stub, const char *name, int limit, void *tid, void *bid,
				 void *block, void *grid, int *wave)
{
	(void)module, (void)stub, (void)limit, (void)tid, (void)bid, (void)block, (void)grid, (void)wave;
	kernel[kernels].function = function;
	kernel[kernels++].name = name;
	return 0;
}

static const char *name_of(const void *function)
{
	for (int i = 0; i < kernels; i++)
		if (kernel[i].function == function || (const void *)&kernel[i] == function)
			return kernel[i].name;
	return "unregistered";
}

int GPU(LaunchKernel)(const void *function, struct gpu_dim3 grid, struct gpu_dim3 block, void **args, size_t shared, void *stream)
{
	(void)args;
	if (!grid.x || block.x * block.y * block.z > GPU_THREADS_MAX)
		return GPU_BAD_SIZES;
	return put((struct gpu_item) { .name = name_of(function), .us = (int)shared }, stream);
}

#ifndef HIP
int cudaLaunchKernelExC(const struct gpu_launch_config *c, const void *function, void **args)
{
	return cudaLaunchKernel(function, c->grid, c->block, args, c->shared, c->stream);
}

/* As of CUDA 13: the host's function becomes a handle. */
int __cudaGetKernel(void **to, const void *function)
{
	for (int i = 0; i < kernels; i++)
		if (kernel[i].function == function)
			*to = &kernel[i];
	return 0;
}
#endif

int gpu_collective(const char *name, size_t bytes, void *stream)
{
	return put((struct gpu_item) { .name = name, .us = 1000, .bytes = bytes }, stream);
}

/* ---- streams, graphs, events -------------------------------------------------------------- */

int GPU(StreamCreate)(void **stream) { return (*stream = gpu_new_stream()) == NULL; }
int GPU(StreamDestroy)(void *stream) { return gpu_stream[gpu_number(stream)].used = 0; }
int GPU(StreamQuery)(void *stream) { return gpu_ask(gpu_number(stream), GPU_ITEMS) ? 0 : GPU_NOT_READY; }
int GPU(StreamBeginCapture)(void *stream, int mode) { return mode + !(gpu_stream[gpu_number(stream)].captures = 1); }

int GPU(StreamEndCapture)(void *stream, void **to)
{
	*to = &graph;
	return gpu_stream[gpu_number(stream)].captures = 0;
}

int GPU(GraphLaunch)(void *which, void *stream)
{
	for (int i = 0; i < graph.items; i++)
		put(graph.item[i], stream);
	return which != &graph;
}

int GPU(StreamSynchronize)(void *stream)
{
	gpu_wait(gpu_number(stream), GPU_ITEMS);
	return 0;
}

int GPU(DeviceSynchronize)(void)
{
	gpu_wait(GPU_ALL, GPU_ITEMS);
	return 0;
}

static int event_number(const void *e) { return (int)((const char *)e - (const char *)event) / (int)sizeof(*event); }
int GPU(EventCreate)(void **to) { return (*to = &event[events++]) == NULL; }

int GPU(EventRecord)(void *e, void *stream)
{
	event[event_number(e)].stream = gpu_number(stream);
	event[event_number(e)].before = gpu_items;
	return 0;
}

int GPU(EventSynchronize)(void *e)
{
	gpu_wait(event[event_number(e)].stream, event[event_number(e)].before);
	return 0;
}

int GPU(EventQuery)(void *e)
{
	return gpu_ask(event[event_number(e)].stream, event[event_number(e)].before) ? 0 : GPU_NOT_READY;
}

/* ---- names and books ---------------------------------------------------------------------- */

#ifdef HIP
int roctxNameHipStream(const char *name, const void *stream) { return !name || !stream; }
#else
int nvtxNameCudaStreamA(void *stream, const char *name) { return !name || !stream; }
#endif

int gpu_books(void)
{
	gpu_print_books();
	return 0;
}
