/* cc: -shared -fPIC -pthread -Wl,-Bsymbolic */
/* gpu_driver.c - stands in for libcuda.so.1: see gpu_driver.h and gpu_core.h. A kernel takes as many microseconds as it asks for bytes of shared memory. */
#include "gpu_driver.h"

#include "gpu_core.h"

enum { FUNCTIONS = 8 };

static const char *function[FUNCTIONS];
static int functions;

int cuModuleGetFunction(void **to, void *module, const char *name)
{
	(void)module;
	if (name[0] == '?')
		return 500;             /* no such function */
	function[functions] = name;
	*to = &function[functions++];
	return 0;
}

int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream,
		   void **args, void **extra)
{
	(void)args, (void)extra;
	if (gx * gy * gz == 0 || bx * by * bz > 1024)
		return 1;
	gpu_put((struct gpu_item) { .name = *(const char **)f, .us = (int)shared, .stream = gpu_number(stream) });
	return 0;
}

int cuLaunchKernelEx(const struct cu_launch_config *c, void *f, void **args, void **extra)
{
	return cuLaunchKernel(f, c->grid_x, c->grid_y, c->grid_z, c->block_x, c->block_y, c->block_z, c->shared, c->stream, args, extra);
}

int cuMemAlloc_v2(unsigned long *to, size_t bytes) { return gpu_alloc((void **)to, bytes, GPU_DEVICE); }
int cuMemFree_v2(unsigned long at) { return gpu_free((void *)at, GPU_DEVICE); }
int cuMemAllocHost_v2(void **to, size_t bytes) { return gpu_alloc(to, bytes, GPU_PINNED); }
int cuMemFreeHost(void *at) { return gpu_free(at, GPU_PINNED); }

int cuMemcpyHtoD_v2(unsigned long to, const void *from, size_t bytes)
{
	gpu_put((struct gpu_item) { .name = "h2d", .to = (void *)to, .from = from, .bytes = bytes });
	gpu_wait(0, GPU_ITEMS);
	return 0;
}

int cuMemcpyDtoHAsync_v2(void *to, unsigned long from, size_t bytes, void *stream)
{
	gpu_put((struct gpu_item) { .name = "d2h", .to = to, .from = (const void *)from, .bytes = bytes, .stream = gpu_number(stream) });
	return 0;
}

int cuMemcpyAsync(unsigned long to, unsigned long from, size_t bytes, void *stream)
{
	gpu_put((struct gpu_item) { .name = "d2d", .to = (void *)to, .from = (const void *)from, .bytes = bytes, .stream = gpu_number(stream) });
	return 0;
}

int cuMemcpy(unsigned long to, unsigned long from, size_t bytes)
{
	cuMemcpyAsync(to, from, bytes, NULL);
	gpu_wait(0, GPU_ITEMS);
	return 0;
}

int cuMemsetD32Async(unsigned long at, unsigned value, size_t count, void *stream)
{
	gpu_put((struct gpu_item) { .name = "fill", .to = (void *)at, .fill = (int)(value & 255), .bytes = 4 * count, .stream = gpu_number(stream) });
	return 0;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	*stream = gpu_new_stream();
	return flags > 1;
}

int cuStreamSynchronize(void *stream)
{
	gpu_wait(gpu_number(stream), GPU_ITEMS);
	return 0;
}

int cuCtxSynchronize(void)
{
	gpu_wait(GPU_ALL, GPU_ITEMS);
	return 0;
}

int gpu_books(void)
{
	gpu_print_books();
	return 0;
}

int cuGetProcAddress_v2(const char *symbol, void **to, int version, unsigned long flags, int *status)
{
#define F(name, asked, arguments) { #asked, (void *)name },
	static const struct { const char *name; void *function; } all[] = { CU_FUNCTIONS(F) };
#undef F

	(void)version, (void)flags, (void)status;
	*to = NULL;
	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (!strcmp(all[i].name, symbol))
			*to = all[i].function;
	return *to ? 0 : 500;
}
