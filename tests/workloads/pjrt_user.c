/* cc: -ldl */
/* pjrt_user.c - uses a PJRT plugin as JAX does, and says what it moved: pjrt_user PLUGIN EXECUTIONS */
#include "pjrt.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static const struct table *api;

#define CALL(slot_number, ...) api->slot[slot_number - 5](&(__VA_ARGS__))

static void *upload(const void *data, int type, size_t rank, const int64_t *dims)
{
	struct from_host a = { .size = sizeof a, .data = data, .type = type, .dims = dims, .rank = rank };

	return CALL(27, a) ? NULL : a.buffer;
}

static void await(void *event)
{
	struct one a = { sizeof a, NULL, event };

	CALL(13, a);
}

static void destroy(void *buffer)
{
	struct one a = { sizeof a, NULL, buffer };

	CALL(63, a);
}

static void delete(void *buffer)
{
	struct one a = { sizeof a, NULL, buffer };

	CALL(72, a);
}

int main(int argc, char **argv)
{
	const struct table *(*get)(void);
	void *library = argc > 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	static float weights[64][32];
	static char bytes[4096];
	/* At the very end of what can be read: who looks at more dimensions than there are finds nothing. */
	char *room = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int64_t matrix[6] = { 64, 32 }, cube[6] = { 2, 3, 4 }, *line = (int64_t *)(room + 4096 - 8);
	int executions = argc > 2 ? atoi(argv[2]) : 0;
	long sum = 0;

	if (!library || !(get = dlsym(library, "GetPjrtApi")))
		return 2;
	mprotect(room + 4096, 4096, PROT_NONE);
	line[0] = 1000;
	api = get();
	printf("same %d, size %zu, version %d.%d\n", api == get(), api->size, api->major, api->minor);

	struct create client = { .size = sizeof client };
	struct program program = { .size = sizeof program, .code = "module @jit_matmul", .code_size = 18, .format = "mlir", .format_size = 4 };
	struct compile compile = { .size = sizeof compile, .program = &program };

	CALL(15, client);
	compile.client = client.client;
	CALL(25, compile);
	struct get_executable whose = { .size = sizeof whose, .loaded = compile.executable };

	CALL(56, whose);
	struct name name = { .size = sizeof name, .executable = whose.executable };

	CALL(46, name);
	void *w = upload(weights, TYPE_F32, 2, matrix), *c = upload(bytes, TYPE_C128, 3, cube), *l = upload(bytes, TYPE_BF16, 1, line);
	void *scalar = upload(bytes, TYPE_U8, 0, cube), *none = upload(NULL, TYPE_F32, 2, matrix);

	for (int i = 0; i < executions; i++) {
		void *out = NULL, *in[] = { w, c }, *const *ins[] = { in }, **outs[] = { &out };
		struct execute run = { .size = sizeof run, .executable = compile.executable, .arguments = ins, .devices = 1, .count = 2, .outputs = outs };
		struct to_host back = { .size = sizeof back, .source = NULL };

		CALL(60, run);
		back.source = out;
		CALL(75, back);
		back.to = malloc(back.bytes);
		CALL(75, back);
		await(back.event);
		sum += (long)back.bytes;
		free(back.to);
		destroy(out);
	}
	destroy(c);
	delete(w);
	destroy(w);
	delete(l);
	printf("read back %ld, none %d, left %d\n", sum, none == NULL, w && l && scalar);
	return 0;
}
