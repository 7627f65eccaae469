/* cc: -shared -fPIC */
/*
 * ggml_metal.c - a stand-in for ggml's layer over Metal, which only Apple's systems have: see ggml_metal.h.
 */
#include "ggml_metal.h"
#include "standin.h"

#include <stdlib.h>

struct ggml_metal_pipeline {
	char name[64];
};

struct ggml_metal_encoder {
	struct ggml_metal_pipeline *pipeline;
};

enum { KERNEL_US = 2000, ENCODED_MAX = 64 };

static struct ggml_metal_pipeline pipelines[8];
static int known, encoded;
static const char *to_run[ENCODED_MAX];

void *ggml_metal_buffer_init(void *device, size_t size, bool shared)
{
	(void)device, (void)shared;
	return calloc(1, size);
}

void ggml_metal_buffer_free(void *buffer)
{
	free(buffer);
}

void ggml_metal_buffer_set_tensor(void *buffer, void *tensor, const void *data, size_t offset, size_t size)
{
	(void)tensor;
	memcpy((char *)buffer + offset, data, size);
}

void ggml_metal_buffer_get_tensor(void *buffer, const void *tensor, void *data, size_t offset, size_t size)
{
	(void)tensor;
	memcpy(data, (const char *)buffer + offset, size);
}

struct ggml_metal_pipeline_with_params ggml_metal_library_get_pipeline(void *library, const char *name)
{
	struct ggml_metal_pipeline_with_params found = { 0 };

	(void)library;
	for (int i = 0; i < known; i++)
		if (!strcmp(pipelines[i].name, name))
			found.pipeline = &pipelines[i];
	return found;
}

struct ggml_metal_pipeline_with_params ggml_metal_library_compile_pipeline(void *library, const char *base, const char *name, void *values)
{
	(void)library, (void)base, (void)values;
	snprintf(pipelines[known].name, sizeof(pipelines[0].name), "%s", name);
	return (struct ggml_metal_pipeline_with_params) { .pipeline = &pipelines[known++], .nsg = 4, .nr0 = 2 };
}

struct ggml_metal_encoder *ggml_metal_encoder_init(void *commands, bool concurrent)
{
	(void)commands, (void)concurrent;
	return calloc(1, sizeof(struct ggml_metal_encoder));
}

void ggml_metal_encoder_free(struct ggml_metal_encoder *encoder)
{
	free(encoder);
}

void ggml_metal_encoder_set_pipeline(struct ggml_metal_encoder *encoder, struct ggml_metal_pipeline_with_params pipeline)
{
	encoder->pipeline = pipeline.pipeline;
}

void ggml_metal_encoder_dispatch_threadgroups(struct ggml_metal_encoder *encoder, int tg0, int tg1, int tg2, int tptg0, int tptg1, int tptg2)
{
	if (tg0 && tg1 && tg2 && tptg0 && tptg1 && tptg2)
		to_run[encoded++] = encoder->pipeline->name;
}

/* Encodes the graph, of which there is always the same, as the library does: through its own encoder. */
int ggml_metal_graph_compute(void *context, void *graph)
{
	struct ggml_metal_encoder *encoder = ggml_metal_encoder_init(NULL, true);
	struct ggml_metal_pipeline_with_params multiply = ggml_metal_library_get_pipeline(NULL, "kernel_mul_mm_f32_f32"), add;

	(void)context, (void)graph;
	if (!multiply.pipeline)
		multiply = ggml_metal_library_compile_pipeline(NULL, "kernel_mul_mm", "kernel_mul_mm_f32_f32", NULL);
	add = ggml_metal_library_get_pipeline(NULL, "kernel_add");
	if (!add.pipeline)
		add = ggml_metal_library_compile_pipeline(NULL, "kernel_bin", "kernel_add", NULL);
	ggml_metal_encoder_set_pipeline(encoder, multiply);
	ggml_metal_encoder_dispatch_threadgroups(encoder, 32, 16, 1, 128, 1, 1);
	ggml_metal_encoder_set_pipeline(encoder, add);
	ggml_metal_encoder_dispatch_threadgroups(encoder, 256, 1, 3, 64, 2, 2);
	ggml_metal_encoder_free(encoder);
	for (int i = 0; i < encoded; i++)
		standin_hand(to_run[i], KERNEL_US);
	encoded = 0;
	return 0;
}

void ggml_metal_synchronize(void *context)
{
	(void)context;
	standin_wait();
}

void ggml_metal_books(void)
{
	standin_print();
}
