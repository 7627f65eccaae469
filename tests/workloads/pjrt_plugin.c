/* cc: -shared -fPIC */
/*
 * pjrt_plugin.c - a stand-in for a PJRT plugin, after the facts of PJRT's public header (major version 0): a table that begins with its
 * size, functions with one pointer to a struct. It "computes" at once. With -DOLD its table ends before PJRT_Buffer_ToHostBuffer.
 */
#include "pjrt.h"
#include <stdlib.h>
#include <string.h>

struct buffer { long bytes; char data[]; };

static long width(int type) { return type == TYPE_F32 ? 4 : type == TYPE_BF16 ? 2 : type == TYPE_C128 ? 16 : 1; }

static void *from_host(struct from_host *a)
{
	long bytes = width(a->type);
	struct buffer *b;

	for (size_t i = 0; i < a->rank; i++)
		bytes *= a->dims[i];
	if (!a->data)
		return "no data";               /* an error is whatever is not NULL */
	b = malloc(sizeof *b + (size_t)bytes);
	b->bytes = bytes;
	memcpy(b->data, a->data, (size_t)bytes);
	a->buffer = b;
	a->done = b;
	return NULL;
}

/* Without a destination, it says how much room is needed. */
static void *to_host(struct to_host *a)
{
	struct buffer *b = a->source;

	if (!a->to) {
		a->bytes = (size_t)b->bytes;
		return NULL;
	}
	if (a->bytes < (size_t)b->bytes)
		return "too small";
	memcpy(a->to, b->data, (size_t)b->bytes);
	a->event = b;
	return NULL;
}

static void *execute(struct execute *a)
{
	struct buffer *in = a->arguments[0][0], *out = malloc(sizeof *out + (size_t)in->bytes);

	memcpy(out, in, sizeof *in + (size_t)in->bytes);
	a->outputs[0][0] = out;
	return NULL;
}

static void *compile(struct compile *a) { a->executable = a->program; return NULL; }
static void *get_executable(struct get_executable *a) { a->executable = (char *)a->loaded + 1; return NULL; }
static void *name(struct name *a) { a->name = "jit_matmul!"; a->length = 10; return NULL; }
static void *create(struct create *a) { a->client = &a->client; return NULL; }
static void *await(struct one *a) { return a->object ? NULL : "no event"; }
static void *destroy(struct one *a) { free(a->object); return NULL; }

static void *delete(struct one *a) { ((struct buffer *)a->object)->bytes = 0; return NULL; }

static struct table table = {
	.size = sizeof table, .version_size = 24, .minor = 33,
#ifdef OLD
	.size = 8 * 75,
#endif
	.slot = { [13 - 5] = (function)await, [15 - 5] = (function)create, [25 - 5] = (function)compile, [27 - 5] = (function)from_host,
		  [46 - 5] = (function)name, [56 - 5] = (function)get_executable, [60 - 5] = (function)execute, [63 - 5] = (function)destroy,
		  [72 - 5] = (function)delete, [75 - 5] = (function)to_host },
};

const struct table *GetPjrtApi(void);
const struct table *GetPjrtApi(void) { return &table; }
