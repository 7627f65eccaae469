/*
 * ggml_metal_user.c - three graphs on the stand-in for ggml-metal; each runs two kernels.
 */
#include "ggml_metal.h"

#include <stdio.h>

int main(void)
{
	static char data[1 << 20];
	void *weights = ggml_metal_buffer_init(NULL, 8 << 20, true), *results = ggml_metal_buffer_init(NULL, 2 << 20, false);

	ggml_metal_buffer_set_tensor(weights, NULL, data, 4096, 1 << 20);
	for (int i = 0; i < 3; i++) {
		if (ggml_metal_graph_compute(NULL, NULL))
			return 1;
		ggml_metal_synchronize(NULL);
		ggml_metal_buffer_get_tensor(results, NULL, data, 0, 1000);
	}
	ggml_metal_buffer_free(results);
	puts("done");                   /* the weights are left */
	ggml_metal_books();
}
