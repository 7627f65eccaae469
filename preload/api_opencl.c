/*
 * api_opencl.c - OpenCL's entry points, and the real functions behind them.
 *
 * All functions come from one loader (or driver): the one that the program was last seen to use. Objects carry their
 * driver's own table, so another loader of the same process would come to the same function by them.
 */
#include "bind.h"
#include "elf_image.h"
#include "opencl.h"

struct opencl cl;

static void *loader;                    /* where its module begins */

/* Fills what the program has not asked for itself: from the table of symbols of the module that `real` lies in. */
static void found(void *real)
{
	static const struct { const char *name; void **at; } slots[] = {
#define X(name) { #name, (void **)&cl.name },
		OPENCL_WRAPPED(X) OPENCL_USED(X)
#undef X
	};
	struct dl_find_object object;
	struct elf_image image;

	if (_dl_find_object(real, &object) != 0 || object.dlfo_map_start == loader || !elf_open(&image, object.dlfo_link_map))
		return;
	loader = object.dlfo_map_start;
	for (u32 i = 0; i < sizeof slots / sizeof *slots; i++) {
		void *symbol = elf_symbol(&image, slots[i].name);

		if (symbol)
			__atomic_store_n(slots[i].at, symbol, __ATOMIC_RELEASE);
	}
}

const struct entry opencl_entries[] = {
#define X(name) { #name, (void *)w_##name, (void **)&cl.name, found },
	OPENCL_WRAPPED(X)
#undef X
	{ 0 }
};

/* ---- extensions ------------------------------------------------------------------------ */

static void *pick(const char *name, void *real)
{
	static const struct { const char *name; void *wrapper, **real; } rows[] = {
#define X(name) { #name, (void *)w_##name, (void **)&cl.name },
		OPENCL_EXTENSIONS(X)
#undef X
	};
	const struct entry *e;

	if (!real || !name)
		return real;
	for (u32 i = 0; i < sizeof rows / sizeof *rows; i++)
		if (text_equal(rows[i].name, name)) {
			*rows[i].real = real;
			return rows[i].wrapper;
		}
	e = entry_find(name);
	return e ? e->wrapper : real;
}

void *w_clGetExtensionFunctionAddress(const char *name)
{
	return pick(name, cl.clGetExtensionFunctionAddress(name));
}

void *w_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
	return pick(name, cl.clGetExtensionFunctionAddressForPlatform(platform, name));
}
