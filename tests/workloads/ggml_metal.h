/*
 * ggml_metal.h - as much of ggml's layer over Metal as the stand-in has; opaque types are void.
 */
#ifndef GGML_METAL_H
#define GGML_METAL_H

#include <stdbool.h>
#include <stddef.h>

struct ggml_metal_pipeline;
struct ggml_metal_encoder;

struct ggml_metal_pipeline_with_params {
	struct ggml_metal_pipeline *pipeline;
	int nsg, nr0, nr1;
	size_t smem;
	bool c4, cnt;
};

void *ggml_metal_buffer_init(void *device, size_t size, bool shared);
void ggml_metal_buffer_free(void *buffer);
void ggml_metal_buffer_set_tensor(void *buffer, void *tensor, const void *data, size_t offset, size_t size);
void ggml_metal_buffer_get_tensor(void *buffer, const void *tensor, void *data, size_t offset, size_t size);
int ggml_metal_graph_compute(void *context, void *graph);
void ggml_metal_synchronize(void *context);
void ggml_metal_books(void);            /* what really ran: not of ggml */

#endif
