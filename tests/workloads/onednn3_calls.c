/*
 * onednn3_calls.c - primitives of oneDNN 3, made once and executed some times: matmul (plain and batched), convolution forward and
 * backward, pooling, relu, softmax, a sum of two, a reorder. Says each as "did NAME".
 *
 * The library comes without its header: what is called is declared here, after the public documentation.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef void *handle;
typedef int64_t dims[12];

struct argument {
	int what;
	handle memory;
};

enum { CPU = 1, IN_ORDER = 1, F32 = 3, FORWARD = 64, INFERENCE = 96, TAG_AB = 3, TAG_ABC = 4, TAG_ABCD = 5 };
enum { DIRECT = 1, POOLING_MAX = 0x1ff, RELU = 0x20, SOFTMAX = 0x30000, ADD = 0x1fff0 };
enum { SRC = 1, SRC_1 = 2, DST = 17, WEIGHTS = 33, DIFF_SRC = 129, DIFF_DST = 145, DIFF_WEIGHTS = 161 };

int dnnl_engine_create(handle *engine, int kind, size_t index);
int dnnl_stream_create(handle *stream, handle engine, unsigned flags);
int dnnl_memory_desc_create_with_tag(handle *desc, int rank, const int64_t *sizes, int type, int tag);
size_t dnnl_memory_desc_get_size(handle desc);
int dnnl_memory_create(handle *memory, handle desc, handle engine, void *data);
int dnnl_memory_get_data_handle(handle memory, void **data);
int dnnl_memory_get_memory_desc(handle memory, handle *desc);
int dnnl_memory_desc_clone(handle *desc, handle from);
int dnnl_primitive_create(handle *primitive, handle desc);
int dnnl_primitive_execute(handle primitive, handle stream, int n, const struct argument *arguments);
int dnnl_primitive_destroy(handle primitive);
int dnnl_primitive_desc_destroy(handle desc);
int dnnl_stream_wait(handle stream);
int dnnl_matmul_primitive_desc_create(handle *desc, handle engine, handle src, handle weights, handle bias, handle dst, handle attributes);
int dnnl_convolution_forward_primitive_desc_create(handle *desc, handle engine, int kind, int algorithm, handle src, handle weights, handle bias,
	handle dst, const dims strides, const dims dilates, const dims left, const dims right, handle attributes);
int dnnl_convolution_backward_data_primitive_desc_create(handle *desc, handle engine, int algorithm, handle src, handle weights, handle dst,
	const dims strides, const dims dilates, const dims left, const dims right, handle hint, handle attributes);
int dnnl_convolution_backward_weights_primitive_desc_create(handle *desc, handle engine, int algorithm, handle src, handle weights, handle bias,
	handle dst, const dims strides, const dims dilates, const dims left, const dims right, handle hint, handle attributes);
int dnnl_pooling_forward_primitive_desc_create(handle *desc, handle engine, int kind, int algorithm, handle src, handle dst, const dims strides,
	const dims kernel, const dims dilates, const dims left, const dims right, handle attributes);
int dnnl_eltwise_forward_primitive_desc_create(handle *desc, handle engine, int kind, int algorithm, handle src, handle dst, float alpha, float beta,
	handle attributes);
int dnnl_softmax_forward_primitive_desc_create(handle *desc, handle engine, int kind, int algorithm, handle src, handle dst, int axis, handle attributes);
int dnnl_binary_primitive_desc_create(handle *desc, handle engine, int algorithm, handle a, handle b, handle dst, handle attributes);
int dnnl_reorder_primitive_desc_create(handle *desc, handle src, handle src_engine, handle dst, handle dst_engine, handle attributes);

static handle engine, stream;

static void must(int status, const char *what)
{
	if (status) {
		printf("oneDNN: %s: %d\n", what, status);
		exit(1);
	}
}

#define MUST(call) must(call, #call)
#define DIMS(...) (const int64_t[12]) { __VA_ARGS__ }

static handle shape(int rank, const int64_t *sizes)
{
	static const int tag[] = { 0, 0, TAG_AB, TAG_ABC, TAG_ABCD };
	handle desc;

	MUST(dnnl_memory_desc_create_with_tag(&desc, rank, sizes, F32, tag[rank]));
	return desc;
}

static handle tensor(handle desc)
{
	size_t bytes = dnnl_memory_desc_get_size(desc);
	float *data = aligned_alloc(64, (bytes + 63) / 64 * 64);
	handle memory;

	for (size_t i = 0; i < bytes / sizeof(float); i++)
		data[i] = (float)(i % 7) - 3;
	MUST(dnnl_memory_create(&memory, desc, engine, data));
	return memory;
}

static double sum_of(handle memory, int n)
{
	double sum = 0;
	void *data;

	MUST(dnnl_memory_get_data_handle(memory, &data));
	for (int i = 0; i < n; i++)
		sum += ((float *)data)[i] * (1 + i % 5);
	return sum;
}

static void execute(handle desc, int times, int n, const struct argument *arguments, const char *did)
{
	handle primitive;

	MUST(dnnl_primitive_create(&primitive, desc));
	for (int i = 0; i < times; i++) {
		MUST(dnnl_primitive_execute(primitive, stream, n, arguments));
		MUST(dnnl_stream_wait(stream));
		printf("did %s\n", did);
	}
	dnnl_primitive_destroy(primitive);
}

#define ARGS(...) (const struct argument[]) { __VA_ARGS__ }

static void matmul(handle a, handle b, handle c, int times, int n, const char *did)
{
	handle desc, x = tensor(a), z = tensor(c), inside, copy;

	MUST(dnnl_memory_get_memory_desc(x, &inside));         /* as the C++ interface asks for one */
	MUST(dnnl_memory_desc_clone(&copy, inside));
	MUST(dnnl_matmul_primitive_desc_create(&desc, engine, copy, b, NULL, c, NULL));
	execute(desc, times, 3, ARGS({ SRC, x }, { WEIGHTS, tensor(b) }, { DST, z }), did);
	dnnl_primitive_desc_destroy(desc);
	printf("%.5g\n", sum_of(z, n));
}

static void convolution(void)
{
	handle a = shape(4, DIMS(2, 16, 12, 10)), b = shape(4, DIMS(32, 16, 3, 3)), c = shape(4, DIMS(2, 32, 12, 10)), forward, data, weights;
	handle x = tensor(a), w = tensor(b), z = tensor(c);
	const int64_t *ones = DIMS(1, 1), *none = DIMS(0, 0);

	MUST(dnnl_convolution_forward_primitive_desc_create(&forward, engine, FORWARD, DIRECT, a, b, NULL, c, ones, none, ones, ones, NULL));
	MUST(dnnl_convolution_backward_data_primitive_desc_create(&data, engine, DIRECT, a, b, c, ones, none, ones, ones, forward, NULL));
	MUST(dnnl_convolution_backward_weights_primitive_desc_create(&weights, engine, DIRECT, a, b, NULL, c, ones, none, ones, ones, forward, NULL));
	execute(forward, 4, 3, ARGS({ SRC, x }, { WEIGHTS, w }, { DST, z }), "convolution_forward 2x16x12x10:32x16x3x3:2x32x12x10");
	printf("%.5g\n", sum_of(z, 2 * 32 * 12 * 10));
	execute(data, 2, 3, ARGS({ DIFF_SRC, x }, { WEIGHTS, w }, { DIFF_DST, z }), "convolution_backward_data 2x16x12x10:32x16x3x3:2x32x12x10");
	execute(weights, 1, 3, ARGS({ SRC, x }, { DIFF_WEIGHTS, w }, { DIFF_DST, z }), "convolution_backward_weights 2x16x12x10:32x16x3x3:2x32x12x10");
}

static void others(void)
{
	handle a = shape(2, DIMS(30, 50)), image = shape(4, DIMS(2, 8, 12, 10)), half = shape(4, DIMS(2, 8, 6, 5)), desc;
	handle x = tensor(a), y = tensor(a), from = tensor(image), to = tensor(half);

	MUST(dnnl_eltwise_forward_primitive_desc_create(&desc, engine, INFERENCE, RELU, a, a, 0, 0, NULL));
	execute(desc, 3, 2, ARGS({ SRC, x }, { DST, x }), "eltwise_forward 30x50");
	MUST(dnnl_softmax_forward_primitive_desc_create(&desc, engine, INFERENCE, SOFTMAX, a, a, 1, NULL));
	execute(desc, 1, 2, ARGS({ SRC, x }, { DST, x }), "softmax_forward 30x50");
	MUST(dnnl_binary_primitive_desc_create(&desc, engine, ADD, a, a, a, NULL));
	execute(desc, 2, 3, ARGS({ SRC, x }, { SRC_1, y }, { DST, x }), "binary 30x50:30x50:30x50");
	MUST(dnnl_reorder_primitive_desc_create(&desc, a, engine, a, engine, NULL));
	execute(desc, 1, 2, ARGS({ SRC, x }, { DST, y }), "reorder 30x50");
	MUST(dnnl_pooling_forward_primitive_desc_create(&desc, engine, INFERENCE, POOLING_MAX, image, half, DIMS(2, 2), DIMS(2, 2), DIMS(0, 0), DIMS(0, 0),
		DIMS(0, 0), NULL));
	execute(desc, 1, 2, ARGS({ SRC, from }, { DST, to }), "pooling_forward 2x8x12x10:2x8x6x5");
	printf("%.5g %.5g\n", sum_of(y, 1500), sum_of(to, 2 * 8 * 6 * 5));
}

int main(void)
{
	MUST(dnnl_engine_create(&engine, CPU, 0));
	MUST(dnnl_stream_create(&stream, engine, IN_ORDER));
	matmul(shape(2, DIMS(64, 32)), shape(2, DIMS(32, 48)), shape(2, DIMS(64, 48)), 5, 64 * 48, "matmul 64x32:32x48:64x48");
	matmul(shape(3, DIMS(6, 8, 10)), shape(3, DIMS(6, 10, 12)), shape(3, DIMS(6, 8, 12)), 2, 6 * 8 * 12, "matmul 6x8x10:6x10x12:6x8x12");
	convolution();
	others();
	return 0;
}
