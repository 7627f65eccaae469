/*
 * api_opencl.c - OpenCL's entry points, and the real functions behind them.
 *
 *   dlsym, GOT  --> the function's module   --> row of that loader   --> door of the row, which the program gets instead
 *   extensions  --> a function of a driver  --> row of the loader that gave it out, without another driver's in its place
 */
#include "bind.h"
#include "elf_image.h"
#include "opencl.h"

struct opencl opencl_rows[OPENCL_LOADERS];
__thread u32 opencl_now;

static const void *loader[OPENCL_LOADERS];      /* of each row: where its module begins; NULL: the row is free */
static u32 lock;                                /* of both */

extern const char opencl_doors[];
#define DOOR(column, row) ((void *)(opencl_doors + ((column) * OPENCL_LOADERS + (row)) * OPENCL_DOOR_BYTES))

enum {
#define X(name) COLUMN_##name,
	OPENCL_WRAPPED(X) OPENCL_EXTENSIONS(X)
#undef X
	COLUMNS
};

static void **function(u32 row, u32 column)
{
	return &((void **)&opencl_rows[row])[column];
}

/* ---- rows ------------------------------------------------------------------------------ */

/* False: it lacks what we need. It is no loader then; if it calls one, that will be seen. */
static bool fill(struct opencl *to, const struct elf_image *image)
{
	*to = (struct opencl){ 0 };
#define X(name) to->name = (__typeof__(to->name))elf_symbol(image, #name);
	OPENCL_WRAPPED(X) OPENCL_USED(X) OPENCL_USED_IF_THERE(X)
#undef X
#define X(name) && to->name
	return to->clSetEventCallback && to->clSetMemObjectDestructorCallback OPENCL_USED(X);
#undef X
}

bool opencl_is_there(u32 row)
{
	struct dl_find_object object;

	return _dl_find_object((void *)opencl_rows[row].clGetDeviceInfo, &object) == 0 && object.dlfo_map_start == loader[row];
}

static u32 free_row(void)
{
	for (u32 i = 0; i < OPENCL_LOADERS; i++)
		if (!loader[i] || !opencl_is_there(i))
			return i;
	return OPENCL_LOADERS;
}

/* The row of this loader in which the function is the real one, or in which there is none yet, or a new row. */
static u32 row_for(const void *module, const struct opencl *all, u32 column, void *real)
{
	u32 row;

	for (row = 0; row < OPENCL_LOADERS; row++)
		if (loader[row] == module && opencl_rows[row].clGetDeviceInfo == all->clGetDeviceInfo &&
		    (!*function(row, column) || *function(row, column) == real))
			break;
	if (row == OPENCL_LOADERS && (row = free_row()) < OPENCL_LOADERS) {
		opencl_rows[row] = *all;
		loader[row] = module;
	}
	if (row < OPENCL_LOADERS)
		__atomic_store_n(function(row, column), real, __ATOMIC_RELEASE);
	return row;
}

/* What the program gets for a real function. */
static void *lead(const void *module, const struct opencl *all, u32 column, void *real)
{
	static bool told;
	u32 row;

	spin_lock(&lock);
	row = row_for(module, all, column, real);
	spin_unlock(&lock);
	if (row < OPENCL_LOADERS)
		return DOOR(column, row);
	if (!__atomic_exchange_n(&told, true, __ATOMIC_RELAXED))
		notice_note("OpenCL: there are more loaders and drivers than mlprof can tell apart; some calls are not recorded");
	return real;
}

/* ---- the table ------------------------------------------------------------------------- */

static void *lead_found(u32 column, void *real)
{
	struct dl_find_object object;
	struct elf_image image;
	struct opencl all;

	if (_dl_find_object(real, &object) != 0 || !elf_open(&image, object.dlfo_link_map) || !fill(&all, &image))
		return real;
	return lead(object.dlfo_map_start, &all, column, real);
}

#define X(name) static void *pick_##name(void *real) { return lead_found(COLUMN_##name, real); }
OPENCL_WRAPPED(X)
#undef X

const struct entry opencl_entries[] = {
#define X(name) { #name, DOOR(COLUMN_##name, 0), .pick = pick_##name },
	OPENCL_WRAPPED(X)
#undef X
	{ 0 }
};

/* ---- extensions ------------------------------------------------------------------------ */

static u32 column_of(const char *name)
{
	static const char *const names[] = {
#define X(name) #name,
		OPENCL_WRAPPED(X) OPENCL_EXTENSIONS(X)
#undef X
	};

	for (u32 i = 0; i < sizeof names / sizeof *names; i++)
		if (text_equal(names[i], name))
			return i;
	return COLUMNS;
}

static void *lead_extension(const char *name, void *real)
{
	u32 row = opencl_now, column = real && name && guest.state == GUEST_ON ? column_of(name) : COLUMNS;
	struct opencl all = opencl_rows[row];

	return column < COLUMNS ? lead(loader[row], &all, column, real) : real;
}

void *w_clGetExtensionFunctionAddress(const char *name)
{
	void *f;

	opencl_enter();
	f = lead_extension(name, cl.clGetExtensionFunctionAddress(name));
	opencl_leave();
	return f;
}

void *w_clGetExtensionFunctionAddressForPlatform(cl_platform_id platform, const char *name)
{
	void *f;

	opencl_enter();
	f = lead_extension(name, cl.clGetExtensionFunctionAddressForPlatform(platform, name));
	opencl_leave();
	return f;
}
