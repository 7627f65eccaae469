/*
 * mlx_c_user.c - kernels of its own and products by the stand-in for mlx-c; the numbers are in tests/e2e/metal.py.
 */
#include "mlx_c.h"

#include <stdio.h>

int main(void)
{
	mlx_stream stream = mlx_default_gpu_stream_new();
	mlx_vector_string none = { NULL };
	mlx_vector_array some = { NULL };
	mlx_array product = { NULL };
	mlx_fast_metal_kernel gelu = mlx_fast_metal_kernel_new("gelu", none, none, "", "", true, false);
	mlx_fast_metal_kernel_config config = mlx_fast_metal_kernel_config_new();
	size_t active;

	mlx_metal_start_capture("run.gputrace");
	mlx_fast_metal_kernel_config_set_grid(config, 1000, 6, 2);
	mlx_fast_metal_kernel_config_set_thread_group(config, 256, 2, 1);
	for (int i = 0; i < 3; i++) {
		mlx_matmul(&product, product, product, stream);
		mlx_fast_metal_kernel_apply(&some, gelu, some, config, stream);
		mlx_async_eval(some);
		mlx_synchronize(stream);
		mlx_get_active_memory(&active);
	}
	mlx_eval(some);
	printf("active %zu\n", active);
	mlx_books();
}
