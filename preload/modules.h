/*
 * modules.h - tells the collector of code the first time a stack meets it.
 */
#ifndef MODULES_H
#define MODULES_H

#include "context.h"
#include <dlfcn.h>

void modules_meet(const struct dl_find_object *object);     /* from a walk: noted, announced after it */
void modules_announce(struct context *c, u64 t);            /* what was met and not yet announced */
void modules_announce_all(struct context *c, u64 t);        /* again, for a forked child */
void modules_forget_gone(struct context *c, u64 t);         /* after code was unloaded: say what is gone */

#endif
