/* cc: -ldl */
/*
 * ort_run.c - runs a model with ONNX Runtime's C library, and says what it did: ort_run LIBRARY MODEL RUNS
 *
 * The model adds a tensor of 256 floats to itself. Functions are taken from the table of the library's own version by their places,
 * which never change: there is no header to compile with.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLOATS = 256, FLOAT = 1, DEVICE_ALLOCATOR = 0, DEFAULT_MEMORY = 0, WARNING = 2 };
enum slot { MESSAGE = 2, CREATE_ENV = 3, CREATE_SESSION = 7, CREATE_SESSION_FROM_ARRAY = 8, RUN = 9, CREATE_OPTIONS = 10, SET_THREADS = 24,
	    INPUT_NAME = 36, TENSOR_WITH_DATA = 49, TENSOR_DATA = 51, CPU_MEMORY = 69, ALLOCATOR_ALLOC = 75, ALLOCATOR_FREE = 76,
	    DEFAULT_ALLOCATOR = 78, RELEASE_ENV = 92, RELEASE_STATUS = 93, RELEASE_MEMORY = 94, RELEASE_SESSION = 95, RELEASE_VALUE = 96,
	    RELEASE_OPTIONS = 100, CREATE_ALLOCATOR = 131, RELEASE_ALLOCATOR = 132, RUN_WITH_BINDING = 133,
	    CREATE_BINDING = 134, RELEASE_BINDING = 135, BIND_INPUT = 136, BIND_OUTPUT_TO_DEVICE = 138 };

struct base { void *const *(*get)(uint32_t version); const char *(*version)(void); };
struct allocator { uint32_t version; void *(*alloc)(struct allocator *, size_t); void (*free)(struct allocator *, void *); };

static void *const *api;

static void must(void *status)
{
	if (!status)
		return;
	printf("failed: %s\n", ((const char *(*)(void *))api[MESSAGE])(status));
	exit(1);
}

#define CALL(slot, ...) must(((void *(*)())api[slot])(__VA_ARGS__))
#define RELEASE(slot, object) ((void (*)(void *))api[slot])(object)

static void *read_file(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	char *bytes = malloc(65536);

	*size = f ? fread(bytes, 1, 65536, f) : 0;
	fclose(f);
	return bytes;
}

/* Blocks of known sizes, by the API and by the allocator's own functions; a name that the library puts into one. */
static void allocate(void *session, void *memory)
{
	struct allocator *a, *own;
	void *block[3];
	char *name;

	CALL(DEFAULT_ALLOCATOR, &a);
	CALL(ALLOCATOR_ALLOC, a, (size_t)1000000, &block[0]);
	CALL(ALLOCATOR_ALLOC, a, (size_t)500000, &block[1]);
	block[2] = a->alloc(a, 250000);
	memset(block[2], 1, 250000);
	CALL(INPUT_NAME, session, (size_t)0, a, &name);
	printf("input %s\n", name);
	CALL(ALLOCATOR_FREE, a, name);
	CALL(ALLOCATOR_FREE, a, block[0]);
	a->free(a, block[2]);
	CALL(CREATE_ALLOCATOR, session, memory, &own);
	CALL(ALLOCATOR_ALLOC, own, (size_t)70000, &block[0]);
	CALL(ALLOCATOR_FREE, own, block[0]);
	RELEASE(RELEASE_ALLOCATOR, own);
}       /* block[1] is left */

/* The session knows what goes in and where the result shall be. */
static void run_bound(void *session, void *memory, void *in, int runs)
{
	void *binding;

	CALL(CREATE_BINDING, session, &binding);
	CALL(BIND_INPUT, binding, "x", in);
	CALL(BIND_OUTPUT_TO_DEVICE, binding, "y", memory);
	for (int i = 0; i < runs; i++)
		CALL(RUN_WITH_BINDING, session, NULL, binding);
	RELEASE(RELEASE_BINDING, binding);
}

int main(int argc, char **argv)
{
	const struct base *(*get_base)(void);
	const struct base *base;
	void *library = argc > 3 ? dlopen(argv[1], RTLD_NOW) : NULL, *env, *options, *session, *second, *memory, *in, *out = NULL, *bytes;
	const char *in_name = "x", *out_name = "y";
	float data[FLOATS], *result, sum = 0;
	int64_t shape[] = { 1, FLOATS };
	int runs = argc > 3 ? atoi(argv[3]) : 0;
	uint32_t version = 0;
	size_t size;

	if (!library || !(get_base = dlsym(library, "OrtGetApiBase")))
		return 2;
	base = get_base();
	printf("version %s\n", base->version());
	sscanf(base->version(), "%*u.%u", &version);
	api = base->get(version);
	if (!api)
		return 3;
	printf("same %d %d, an older version %d\n", base == get_base(), api == base->get(version), base->get(17) != NULL);
	CALL(CREATE_ENV, WARNING, "test", &env);
	CALL(CREATE_OPTIONS, &options);
	CALL(SET_THREADS, options, 1);
	CALL(CREATE_SESSION, env, argv[2], options, &session);
	bytes = read_file(argv[2], &size);
	CALL(CREATE_SESSION_FROM_ARRAY, env, bytes, size, options, &second);
	CALL(CPU_MEMORY, DEVICE_ALLOCATOR, DEFAULT_MEMORY, &memory);
	for (int i = 0; i < FLOATS; i++)
		data[i] = i;
	CALL(TENSOR_WITH_DATA, memory, data, sizeof data, shape, (size_t)2, FLOAT, &in);
	for (int i = 0; i < runs; i++) {
		CALL(RUN, i % 2 ? second : session, NULL, &in_name, (const void *const *)&in, (size_t)1, &out_name, (size_t)1, &out);
		CALL(TENSOR_DATA, out, (void **)&result);
		sum += result[i % FLOATS];
	}
	printf("sum %g\n", sum);
	out_name = "no such output";
	in_name = "x";
	void *status = ((void *(*)())api[RUN])(session, NULL, &in_name, (const void *const *)&in, (size_t)1, &out_name, (size_t)1, &out);

	printf("failed %d\n", status != NULL);
	RELEASE(RELEASE_STATUS, status);
	run_bound(session, memory, in, 3);
	allocate(session, memory);
	RELEASE(RELEASE_VALUE, out);
	RELEASE(RELEASE_VALUE, in);
	RELEASE(RELEASE_MEMORY, memory);
	RELEASE(RELEASE_SESSION, session);
	RELEASE(RELEASE_SESSION, second);
	RELEASE(RELEASE_OPTIONS, options);
	RELEASE(RELEASE_ENV, env);
	return 0;
}
