/*
 * model.c - a small language-model-like program to profile: the one of scripts/quickstart.
 *
 *   model --make FILE     writes the weights
 *   model FILE            maps them and runs a few steps of LAYERS transformer-like layers
 *   model --device FILE   the same, multiplying on an OpenCL device if there is one
 *
 *   weights file --mmap--> layer 0 .. LAYERS-1 : scores, hidden --> next token
 *                             |   both live for one layer only
 *                             `-- keys and values: a cache that grows with every step
 *
 * It counts its own memory and says what its peak was; mlprof must say the same to the byte.
 */
#include "device.h"
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DIM = 256, HIDDEN = 2048, LAYERS = 6, PROMPT = 192, STEPS = 24, VOCABULARY = 2000 };

struct layer {
	float query[DIM * DIM], key[DIM * DIM], value[DIM * DIM];
	float up[DIM * HIDDEN], down[HIDDEN * DIM];
};

struct weights {
	float embedding[VOCABULARY * DIM];
	struct layer layer[LAYERS];
};

struct cache {
	float *key, *value;
	size_t rows;
};

static size_t live_bytes, peak_bytes;
static bool on_device;

static void count(size_t more, size_t less)
{
	live_bytes += more - less;
	if (live_bytes > peak_bytes)
		peak_bytes = live_bytes;
}

static float *tensor_new(size_t rows, size_t columns)
{
	float *t = calloc(rows * columns, sizeof *t);

	if (!t)
		exit(1);
	count(rows * columns * sizeof *t, 0);
	return t;
}

static void tensor_free(float *t, size_t rows, size_t columns)
{
	count(0, rows * columns * sizeof *t);
	free(t);
}

static float *tensor_extend(float *t, size_t rows, size_t more, size_t columns)
{
	t = realloc(t, (rows + more) * columns * sizeof *t);
	if (!t)
		exit(1);
	count(more * columns * sizeof *t, 0);
	return t;
}

/* out[rows][n] += in[rows][k] * w[k][n] */
static void multiply(float *out, const float *in, const float *w, size_t rows, size_t k, size_t n)
{
	for (size_t r = 0; r < rows; r++)
		for (size_t i = 0; i < k; i++)
			for (size_t j = 0; j < n; j++)
				out[r * n + j] += in[r * k + i] * w[i * n + j];
}

/* By weights: the part that goes to the device. */
static void multiply_by(const char *what, float *out, const float *in, const float *w, size_t rows, size_t k, size_t n)
{
	if (on_device)
		device_multiply(what, out, in, w, rows, k, n);
	else
		multiply(out, in, w, rows, k, n);
}

static void normalise(float *x, size_t rows, size_t columns)
{
	for (size_t r = 0; r < rows; r++) {
		float sum = 1e-6f, *row = x + r * columns;

		for (size_t i = 0; i < columns; i++)
			sum += row[i] * row[i];
		for (size_t i = 0; i < columns; i++)
			row[i] /= sqrtf(sum / columns);
	}
}

static void cache_append(struct cache *c, const struct layer *w, const float *x, size_t rows)
{
	c->key = tensor_extend(c->key, c->rows, rows, DIM);
	c->value = tensor_extend(c->value, c->rows, rows, DIM);
	memset(c->key + c->rows * DIM, 0, rows * DIM * sizeof(float));
	memset(c->value + c->rows * DIM, 0, rows * DIM * sizeof(float));
	multiply_by("key", c->key + c->rows * DIM, x, w->key, rows, DIM, DIM);
	multiply_by("value", c->value + c->rows * DIM, x, w->value, rows, DIM, DIM);
	c->rows += rows;
}

static void cache_free(struct cache *c)
{
	tensor_free(c->key, c->rows, DIM);
	tensor_free(c->value, c->rows, DIM);
}

static void softmax(float *x, size_t n)
{
	float sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i] = expf(fminf(x[i] * 0.05f, 20));
	for (size_t i = 0; i < n; i++)
		x[i] /= sum;
}

static void attention(float *x, const struct layer *w, struct cache *c, size_t rows)
{
	float *query = tensor_new(rows, DIM), *scores;

	cache_append(c, w, x, rows);
	multiply_by("query", query, x, w->query, rows, DIM, DIM);
	scores = tensor_new(rows, c->rows);
	for (size_t r = 0; r < rows; r++) {
		for (size_t k = 0; k < c->rows; k++)
			for (size_t i = 0; i < DIM; i++)
				scores[r * c->rows + k] += query[r * DIM + i] * c->key[k * DIM + i];
		softmax(scores + r * c->rows, c->rows);
	}
	multiply(x, scores, c->value, rows, c->rows, DIM);
	tensor_free(scores, rows, c->rows);
	tensor_free(query, rows, DIM);
}

static void feed_forward(float *x, const struct layer *w, size_t rows)
{
	float *hidden = tensor_new(rows, HIDDEN);

	multiply_by("up", hidden, x, w->up, rows, DIM, HIDDEN);
	for (size_t i = 0; i < rows * HIDDEN; i++)
		hidden[i] = fmaxf(hidden[i], 0);
	multiply_by("down", x, hidden, w->down, rows, HIDDEN, DIM);
	tensor_free(hidden, rows, HIDDEN);
}

static int next_token(const float *x, const struct weights *w)
{
	float *logits = tensor_new(1, VOCABULARY);
	int best = 0;

	for (int v = 0; v < VOCABULARY; v++) {
		for (int i = 0; i < DIM; i++)
			logits[v] += x[i] * w->embedding[v * DIM + i];
		best = logits[v] > logits[best] ? v : best;
	}
	tensor_free(logits, 1, VOCABULARY);
	return best;
}

/* Runs `rows` tokens through all layers; returns the one that follows. */
static int step(const struct weights *w, struct cache *cache, const int *token, size_t rows)
{
	float *x = tensor_new(rows, DIM);
	int next;

	for (size_t r = 0; r < rows; r++)
		memcpy(x + r * DIM, w->embedding + token[r] * DIM, DIM * sizeof *x);
	for (int l = 0; l < LAYERS; l++) {
		normalise(x, rows, DIM);
		attention(x, &w->layer[l], &cache[l], rows);
		normalise(x, rows, DIM);
		feed_forward(x, &w->layer[l], rows);
	}
	normalise(x, rows, DIM);
	next = next_token(x + (rows - 1) * DIM, w);
	tensor_free(x, rows, DIM);
	return next;
}

static void run(const struct weights *w)
{
	struct cache cache[LAYERS] = { 0 };
	int token[PROMPT], text[STEPS];

	for (int i = 0; i < PROMPT; i++)
		token[i] = i * 37 % VOCABULARY;
	text[0] = step(w, cache, token, PROMPT);
	for (int i = 1; i < STEPS; i++)
		text[i] = step(w, cache, &text[i - 1], 1);
	for (int l = 0; l < LAYERS; l++)
		cache_free(&cache[l]);
	dprintf(1, "tokens:");
	for (int i = 0; i < STEPS; i++)
		dprintf(1, " %d", text[i]);
	dprintf(1, "\npeak by its own count: %zu bytes\n", peak_bytes);
}

static int make(const char *path)
{
	FILE *file = fopen(path, "w");
	uint32_t state = 1;

	for (size_t i = 0; file && i < sizeof(struct weights) / sizeof(float); i++) {
		state = state * 1664525 + 1013904223;
		float w = ((float)(state >> 8) / (1 << 24) - 0.5f) / 8;
		fwrite(&w, sizeof w, 1, file);
	}
	return file && !fclose(file) ? 0 : 1;
}

static void choose_device(void)
{
	char name[128] = "";

	on_device = device_start(name, sizeof name);
	if (on_device)
		dprintf(1, "device: %.100s\n", name);
	else
		dprintf(1, "device: none (no OpenCL driver is installed), so the layers run on the host\n");
}

int main(int argc, char **argv)
{
	struct weights *w = MAP_FAILED;
	struct stat st;
	int fd;

	if (argc == 3 && !strcmp(argv[1], "--make"))
		return make(argv[2]);
	fd = open(argc > 1 ? argv[argc - 1] : "", O_RDONLY);
	if (fd >= 0 && !fstat(fd, &st) && st.st_size == sizeof *w)
		w = mmap(NULL, sizeof *w, PROT_READ, MAP_PRIVATE, fd, 0);
	if (w == MAP_FAILED) {
		fprintf(stderr, "usage: model [--make | --device] FILE\n");
		return 2;
	}
	if (argc == 3 && !strcmp(argv[1], "--device"))
		choose_device();
	run(w);
	if (on_device)
		device_stop();
	return 0;
}
