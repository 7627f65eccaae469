// cc: -shared -fPIC -nostdlib -fno-stack-protector -Wl,--hash-style=sysv -Wl,-z,relro,-z,now,-z,separate-code
/*
 * iree_library.c - a stand-in for an IREE executable of version VERSION (5, 6, or one that nobody knows).
 */
#include "iree_library.h"

static int nop(const void *e, const struct dispatch_state *d, const struct workgroup_state *w)
{
	return 0;
}

/* Each tile adds one to its own counter. */
static int count(const void *e, const struct dispatch_state *d, const struct workgroup_state *w)
{
	((uint32_t *)d->bindings[0])[w->x + d->x * (w->y + (size_t)d->y * w->z)]++;
	return 0;
}

static int spin(const void *e, const struct dispatch_state *d, const struct workgroup_state *w)
{
	for (volatile uint32_t i = 0; i < d->constants[0]; i++)
		;
	return 0;
}

static int fail(const void *e, const struct dispatch_state *d, const struct workgroup_state *w)
{
	return w->x == d->constants[0];
}

static int call(const void *e, const struct dispatch_state *d, const struct workgroup_state *w)
{
	((void (*)(uint32_t))d->bindings[0])(w->x);
	return 0;
}

static kernel *const kernels[] = { nop, count, spin, fail, call };
static const char *const names[] = { "stand_in_nop", "stand_in_count", "stand_in_spin", "stand_in_fail", "stand_in_call" };
static const struct source sources[] = { { 3, 9, "model.txt" }, { 4, 9, "model.txt" }, { 5, 9, "model.txt" }, { 6, 9, "model.txt" },
					 { 7, 9, "model.txt" } };
static const struct header header = { VERSION, "stand_in" };

#if VERSION == 5
static const struct library5 library = {
#else
static const struct library6 library = {
#endif
	.header = &header,
	.exports = { .count = KERNELS, .kernels = kernels, .names = names, .sources = sources },
};

const void *iree_hal_executable_library_query(uint32_t version, const void *environment)
{
	return version == VERSION ? &library : NULL;
}
