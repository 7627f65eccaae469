/*
 * mlx_c.h - as much of mlx-c as the stand-in has. Its handles are structs of one pointer.
 */
#ifndef MLX_C_H
#define MLX_C_H

#include <stdbool.h>
#include <stddef.h>

typedef struct { void *ctx; } mlx_array, mlx_stream, mlx_vector_array, mlx_vector_string, mlx_fast_metal_kernel, mlx_fast_metal_kernel_config;

mlx_stream mlx_default_gpu_stream_new(void);
int mlx_matmul(mlx_array *result, mlx_array a, mlx_array b, mlx_stream stream);
int mlx_eval(mlx_vector_array outputs);
int mlx_async_eval(mlx_vector_array outputs);
int mlx_synchronize(mlx_stream stream);
int mlx_get_active_memory(size_t *result);
int mlx_metal_start_capture(const char *path);
mlx_fast_metal_kernel mlx_fast_metal_kernel_new(const char *name, mlx_vector_string inputs, mlx_vector_string outputs, const char *source,
						const char *header, bool contiguous, bool atomic);
mlx_fast_metal_kernel_config mlx_fast_metal_kernel_config_new(void);
int mlx_fast_metal_kernel_config_set_grid(mlx_fast_metal_kernel_config config, int x, int y, int z);
int mlx_fast_metal_kernel_config_set_thread_group(mlx_fast_metal_kernel_config config, int x, int y, int z);
int mlx_fast_metal_kernel_apply(mlx_vector_array *outputs, mlx_fast_metal_kernel kernel, mlx_vector_array inputs, mlx_fast_metal_kernel_config config,
				mlx_stream stream);
void mlx_books(void);                   /* what really ran: not of mlx-c */

#endif
