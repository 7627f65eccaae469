/*
 * driver.h - memory of the host that the driver of a device took.
 */
#ifndef DRIVER_H
#define DRIVER_H

#include "../model/symbols.h"
#include <stdbool.h>

/* The call into a device's API inside of which memory with this stack was taken; "" if its name is not known; NULL: the
 * memory is the program's own. `ours`: the driver took it for what mlprof asked of it, not the program. */
const char *driver_call(struct symbols *y, const struct process *p, u32 node, bool *ours);
/* The device whose driver that must be: the only one there is, or NULL. */
const struct device *driver_device(const struct process *p);

#endif
