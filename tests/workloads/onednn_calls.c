// cc: -ldnnl -lm
/*
 * onednn_calls.c - primitives of oneDNN 2, made once and executed some times: matmul (plain and batched), convolution with the
 * layout of its weights that the library likes best (hence a reorder), by the function for dilated ones (dilated and not) forward and
 * backward, relu, softmax; and its gemm. Says each as "did NAME".
 */
#include <dnnl.h>
#include <stdio.h>
#include <stdlib.h>

static dnnl_engine_t engine;
static dnnl_stream_t stream;

static void must(dnnl_status_t status)
{
	if (status != dnnl_success) {
		printf("oneDNN: %d\n", status);
		exit(1);
	}
}

static dnnl_memory_desc_t shape(int rank, const dnnl_dim_t *dims, dnnl_format_tag_t tag)
{
	dnnl_memory_desc_t desc;

	must(dnnl_memory_desc_init_by_tag(&desc, rank, dims, dnnl_f32, tag));
	return desc;
}

static dnnl_memory_t tensor(const dnnl_memory_desc_t *desc)
{
	dnnl_memory_t memory;
	void *data;

	must(dnnl_memory_create(&memory, desc, engine, DNNL_MEMORY_ALLOCATE));
	must(dnnl_memory_get_data_handle(memory, &data));
	for (size_t i = 0; i < dnnl_memory_desc_get_size(desc) / sizeof(float); i++)
		((float *)data)[i] = (float)(i % 7) - 3;
	return memory;
}

static void show(dnnl_memory_t memory, int n)
{
	void *data;
	double sum = 0;

	must(dnnl_memory_get_data_handle(memory, &data));
	for (int i = 0; i < n; i++)
		sum += ((float *)data)[i] * (1 + i % 5);
	printf("%.5g\n", sum);
}

static dnnl_primitive_desc_t described(const void *operation)
{
	dnnl_primitive_desc_t desc;

	must(dnnl_primitive_desc_create(&desc, operation, NULL, engine, NULL));
	return desc;
}

static void execute(dnnl_primitive_desc_t desc, int times, int n, const dnnl_exec_arg_t *args, const char *did)
{
	dnnl_primitive_t primitive;

	must(dnnl_primitive_create(&primitive, desc));
	for (int i = 0; i < times; i++) {
		must(dnnl_primitive_execute(primitive, stream, n, args));
		must(dnnl_stream_wait(stream));
		printf("did %s\n", did);
	}
	dnnl_primitive_destroy(primitive);
	dnnl_primitive_desc_destroy(desc);
}

#define DIMS(...) (const dnnl_dim_t[]) { __VA_ARGS__ }
#define ARGS(...) (const dnnl_exec_arg_t[]) { __VA_ARGS__ }

static void matmul(dnnl_memory_desc_t a, dnnl_memory_desc_t b, dnnl_memory_desc_t c, int times, int n, const char *did)
{
	dnnl_memory_t x = tensor(&a), y = tensor(&b), z = tensor(&c);
	dnnl_matmul_desc_t operation;

	must(dnnl_matmul_desc_init(&operation, &a, &b, NULL, &c));
	execute(described(&operation), times, 3, ARGS({ DNNL_ARG_SRC, x }, { DNNL_ARG_WEIGHTS, y }, { DNNL_ARG_DST, z }), did);
	show(z, n);
	dnnl_memory_destroy(x);
	dnnl_memory_destroy(y);
	dnnl_memory_destroy(z);
}

static void convolution(int times)
{
	dnnl_memory_desc_t a = shape(4, DIMS(2, 16, 12, 10), dnnl_nchw), any = shape(4, DIMS(32, 16, 3, 3),
		dnnl_format_tag_any);
	dnnl_memory_desc_t plain = shape(4, DIMS(32, 16, 3, 3), dnnl_oihw), c = shape(4, DIMS(2, 32, 12, 10), dnnl_nchw);
	dnnl_dims_t strides = { 1, 1 }, padding = { 1, 1 };
	dnnl_convolution_desc_t operation;
	dnnl_primitive_desc_t desc, reorder;
	const dnnl_memory_desc_t *liked;
	dnnl_memory_t x = tensor(&a), w = tensor(&plain), y, z = tensor(&c);

	must(dnnl_convolution_forward_desc_init(&operation, dnnl_forward_inference, dnnl_convolution_direct, &a, &any, NULL,
		&c, strides, padding, padding));
	desc = described(&operation);
	liked = dnnl_primitive_desc_query_md(desc, dnnl_query_weights_md, 0);
	y = tensor(liked);
	must(dnnl_reorder_primitive_desc_create(&reorder, &plain, engine, liked, engine, NULL));
	execute(reorder, 1, 2, ARGS({ DNNL_ARG_FROM, w }, { DNNL_ARG_TO, y }), "reorder 32x16x3x3");
	execute(desc, times, 3, ARGS({ DNNL_ARG_SRC, x }, { DNNL_ARG_WEIGHTS, y }, { DNNL_ARG_DST, z }),
		"convolution_forward 2x16x12x10:32x16x3x3:2x32x12x10");
	show(z, 2 * 32 * 12 * 10);
	dnnl_memory_destroy(x);
	dnnl_memory_destroy(y);
	dnnl_memory_destroy(w);
	dnnl_memory_destroy(z);
}

static dnnl_primitive_desc_t described_after(const void *operation, dnnl_primitive_desc_t forward)
{
	dnnl_primitive_desc_t desc;

	must(dnnl_primitive_desc_create(&desc, operation, NULL, engine, forward));
	return desc;
}

/* By `dilation` more than side by side: 3x3 weights reach over 2 * dilation + 3 */
static void dilated(dnnl_dim_t dilation, const dnnl_dim_t *result, int times, const char *const did[static 3])
{
	dnnl_memory_desc_t a = shape(4, DIMS(2, 16, 12, 10), dnnl_nchw), b = shape(4, DIMS(32, 16, 3, 3), dnnl_oihw), c = shape(4, result, dnnl_nchw);
	dnnl_dims_t strides = { 1, 1 }, padding = { 1, 1 }, dilates = { dilation, dilation };
	dnnl_memory_t x = tensor(&a), w = tensor(&b), z = tensor(&c);
	dnnl_convolution_desc_t forward, data, weights;
	dnnl_primitive_desc_t hint;

	must(dnnl_dilated_convolution_forward_desc_init(&forward, dnnl_forward_training, dnnl_convolution_direct, &a, &b, NULL, &c, strides, dilates,
		padding, padding));
	must(dnnl_dilated_convolution_backward_data_desc_init(&data, dnnl_convolution_direct, &a, &b, &c, strides, dilates, padding, padding));
	must(dnnl_dilated_convolution_backward_weights_desc_init(&weights, dnnl_convolution_direct, &a, &b, NULL, &c, strides, dilates, padding,
		padding));
	hint = described(&forward);
	execute(described_after(&data, hint), times, 3, ARGS({ DNNL_ARG_DIFF_SRC, x }, { DNNL_ARG_WEIGHTS, w }, { DNNL_ARG_DIFF_DST, z }), did[1]);
	execute(described_after(&weights, hint), 1, 3, ARGS({ DNNL_ARG_SRC, x }, { DNNL_ARG_DIFF_WEIGHTS, w }, { DNNL_ARG_DIFF_DST, z }), did[2]);
	execute(hint, times, 3, ARGS({ DNNL_ARG_SRC, x }, { DNNL_ARG_WEIGHTS, w }, { DNNL_ARG_DST, z }), did[0]);
	show(z, 2 * 32 * 8);
	dnnl_memory_destroy(x);
	dnnl_memory_destroy(w);
	dnnl_memory_destroy(z);
}

static void elementwise(int times)
{
	dnnl_memory_desc_t a = shape(2, DIMS(30, 50), dnnl_ab);
	dnnl_memory_t x = tensor(&a);
	dnnl_eltwise_desc_t relu;
	dnnl_softmax_desc_t softmax;

	must(dnnl_eltwise_forward_desc_init(&relu, dnnl_forward_inference, dnnl_eltwise_relu, &a, 0, 0));
	execute(described(&relu), times, 2, ARGS({ DNNL_ARG_SRC, x }, { DNNL_ARG_DST, x }), "eltwise_forward 30x50");
	must(dnnl_softmax_forward_desc_init(&softmax, dnnl_forward_inference, &a, 1));
	execute(described(&softmax), 1, 2, ARGS({ DNNL_ARG_SRC, x }, { DNNL_ARG_DST, x }), "softmax_forward 30x50");
	show(x, 1500);
	dnnl_memory_destroy(x);
}

static void gemm(void)
{
	static float a[20 * 40], b[40 * 30], c[20 * 30];
	double sum = 0;

	for (int i = 0; i < 800; i++)
		a[i] = b[i] = (float)(i % 5);
	must(dnnl_sgemm('N', 'N', 20, 30, 40, 1, a, 40, b, 30, 0, c, 30));
	for (int i = 0; i < 600; i++)
		sum += c[i];
	printf("gemm %g\n", sum);
}

int main(void)
{
	must(dnnl_engine_create(&engine, dnnl_cpu, 0));
	must(dnnl_stream_create(&stream, engine, dnnl_stream_default_flags));
	matmul(shape(2, DIMS(64, 32), dnnl_ab), shape(2, DIMS(32, 48), dnnl_ab), shape(2, DIMS(64, 48), dnnl_ab), 5,
		64 * 48, "matmul 64x32:32x48:64x48");
	matmul(shape(3, DIMS(6, 8, 10), dnnl_abc), shape(3, DIMS(6, 10, 12), dnnl_abc), shape(3, DIMS(6, 8, 12), dnnl_abc),
		2, 6 * 8 * 12,
	       "matmul 6x8x10:6x10x12:6x8x12");
	convolution(4);
	dilated(0, DIMS(2, 32, 12, 10), 2, (const char *const[]) { "convolution_forward 2x16x12x10:32x16x3x3:2x32x12x10",
		"convolution_backward_data 2x16x12x10:32x16x3x3:2x32x12x10", "convolution_backward_weights 2x16x12x10:32x16x3x3:2x32x12x10" });
	dilated(1, DIMS(2, 32, 10, 8), 1, (const char *const[]) { "convolution_forward 2x16x12x10:32x16x3x3:2x32x10x8",
		"convolution_backward_data 2x16x12x10:32x16x3x3:2x32x10x8", "convolution_backward_weights 2x16x12x10:32x16x3x3:2x32x10x8" });
	elementwise(3);
	gemm();
	dnnl_stream_destroy(stream);
	dnnl_engine_destroy(engine);
	return 0;
}
