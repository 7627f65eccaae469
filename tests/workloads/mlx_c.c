/* cc: -shared -fPIC */
/*
 * mlx_c.c - a stand-in for mlx-c (see mlx_c.h) on a GPU, where kernels of a program's own can be used.
 */
#include "mlx_c.h"
#include "standin.h"

#include <stdlib.h>

enum { KERNEL_US = 3000 };

static size_t active;
static const char *lazy[16];
static int waiting;

mlx_stream mlx_default_gpu_stream_new(void)
{
	return (mlx_stream) { malloc(16) };
}

int mlx_matmul(mlx_array *result, mlx_array a, mlx_array b, mlx_stream stream)
{
	(void)a, (void)b, (void)stream;
	result->ctx = malloc(64);
	active += 4096;
	return 0;
}

/* What was only noted down runs now. */
static void run(void)
{
	for (int i = 0; i < waiting; i++)
		standin_hand(lazy[i], KERNEL_US);
	waiting = 0;
}

int mlx_eval(mlx_vector_array outputs)
{
	(void)outputs;
	run();
	standin_wait();
	return 0;
}

int mlx_async_eval(mlx_vector_array outputs)
{
	(void)outputs;
	run();
	return 0;
}

int mlx_synchronize(mlx_stream stream)
{
	(void)stream;
	standin_wait();
	return 0;
}

int mlx_get_active_memory(size_t *result)
{
	*result = active;
	return 0;
}

int mlx_metal_start_capture(const char *path)
{
	return !path;
}

mlx_fast_metal_kernel mlx_fast_metal_kernel_new(const char *name, mlx_vector_string inputs, mlx_vector_string outputs, const char *source,
						const char *header, bool contiguous, bool atomic)
{
	(void)inputs, (void)outputs, (void)source, (void)header, (void)contiguous, (void)atomic;
	return (mlx_fast_metal_kernel) { strdup(name) };
}

mlx_fast_metal_kernel_config mlx_fast_metal_kernel_config_new(void)
{
	return (mlx_fast_metal_kernel_config) { malloc(64) };
}

int mlx_fast_metal_kernel_config_set_grid(mlx_fast_metal_kernel_config config, int x, int y, int z)
{
	return !config.ctx || x * y * z == 0;
}

int mlx_fast_metal_kernel_config_set_thread_group(mlx_fast_metal_kernel_config config, int x, int y, int z)
{
	return !config.ctx || x * y * z == 0;
}

int mlx_fast_metal_kernel_apply(mlx_vector_array *outputs, mlx_fast_metal_kernel kernel, mlx_vector_array inputs, mlx_fast_metal_kernel_config config,
				mlx_stream stream)
{
	(void)outputs, (void)inputs, (void)config, (void)stream;
	lazy[waiting++] = kernel.ctx;
	return 0;
}

void mlx_books(void)
{
	standin_print();
}
