/*
 * driver.c - memory of the host that the driver of a device took.
 *
 * A driver allocates while the program is in one of its API's functions; then a wrapper of libmlprof.so is on the stack, and no callback
 * of the program further in.
 * What its own threads take can't be told from the program's. What the wrapper itself asks of the driver, for the sake of times, is
 * asked from a few functions that are on the stack then.
 */
#include "driver.h"

#include <string.h>

enum { DEPTH_MAX = 4096 };

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_in_libmlprof(const struct frames *all)
{
	return all->module && !strncmp(last_part(all->module->path), "libmlprof.so", 12);
}

/* What a driver calls of the program's is called by a function of ours, whose name begins so (opencl_callback.c). */
static bool is_callback(const struct frames *all)
{
	return is_in_libmlprof(all) && !strncmp(all->at[all->count - 1].function, "of_", 3);
}

/* The wrappers of device APIs are called w_ and the function's name. What else of the library may be on a stack (dlopen,
 * operator new, ...) is exported, so it has another name even where symbols were stripped. */
static const char *wrapper_name(const struct frames *all)
{
	const struct frame *last = &all->at[all->count - 1];

	if (!is_in_libmlprof(all))
		return NULL;
	if (!last->named)
		return "";
	return strncmp(last->function, "w_", 2) ? NULL : last->function + 2;
}

static bool asks_for_itself(const struct frames *all)
{
	static const char *const functions[] = { "vk_bell_start", "vk_op_begin", "vk_op_end", "vk_stamps_keep", "vk_ring_start", "vk_plan_prepare", "vk_clock_read" };
	const char *name = all->at[all->count - 1].function;

	if (!is_in_libmlprof(all))
		return false;
	for (u32 i = 0; i < sizeof functions / sizeof *functions; i++)
		if (!strcmp(name, functions[i]))
			return true;
	return false;
}

/* Devices that have a driver: what probes made of a library has none. `only` is one of them. */
static u32 drivers(const struct process *p, const struct device **only)
{
	u32 count = 0;

	for (u32 i = 0; i < p->devices; i++)
		if (!device_is_library(p->device[i])) {
			*only = p->device[i];
			count++;
		}
	return count;
}

struct driver_call driver_call(struct symbols *y, const struct process *p, u32 node)
{
	struct driver_call call = { 0 };
	const struct device *any;

	if (!drivers(p, &any))
		return call;
	for (u32 depth = 0; node && node < p->nodes && depth < DEPTH_MAX; depth++) {
		struct frames all = symbols_frames(y, p, node);

		node = p->node[node].parent;
		call.name = all.count ? wrapper_name(&all) : NULL;
		call.caller = node;
		if (call.name)
			return call;
		if (all.count && is_callback(&all))
			break;
		call.ours |= all.count && asks_for_itself(&all);
	}
	return (struct driver_call){ 0 };
}

const struct device *driver_device(const struct process *p)
{
	const struct device *only;

	return drivers(p, &only) == 1 ? only : NULL;
}
