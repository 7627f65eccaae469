/*
 * driver.h - memory of the host that the driver of a device took.
 */
#ifndef DRIVER_H
#define DRIVER_H

#include "../model/symbols.h"
#include <stdbool.h>

/* A call into a device's API. */
struct driver_call {
	const char *name;       /* "" if it is not known; NULL: there is none */
	u32 caller;             /* node of who called it */
	bool ours;              /* the driver did it for what mlprof asked of it, not the program */
};

/* Inside of which memory with this stack was taken; none: it is the program's own. */
struct driver_call driver_call(struct symbols *y, const struct process *p, u32 node);
/* The device whose driver that must be: the only one there is, or NULL. */
const struct device *driver_device(const struct process *p);

#endif
