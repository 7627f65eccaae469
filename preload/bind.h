/*
 * bind.h - calls to an API are led to our wrappers, however the program comes by the functions.
 *
 *   dlsym, dlvsym            answered with the wrapper (bind.c)
 *   linked references        the GOT entries of modules that import the name are rewritten (bind_got.c)
 *   probed functions         the same two ways, to the stub of a site (probe.h); and in tables that a probed call leads to
 *   the API's own getters    vkGetInstanceProcAddr & co are wrappers themselves, and ask entry_find()
 *
 * The names are not exported: a loader that binds its own references to us, or a program that has variables or
 * functions of the same names, would break.
 *
 * To add an entry point: a row in its API's table and a wrapper.
 */
#ifndef BIND_H
#define BIND_H

#include "guest.h"
#include <link.h>

struct entry {
	const char *name;
	void *wrapper;
	void **real;                    /* gets the real function whenever it is found */
	void (*found)(void *real);      /* is told so; may be NULL */
	void *(*pick)(void *real);      /* the wrapper for this one of several real functions; may be NULL */
	bool asked_only;                /* only where dlsym is asked for it: references are left alone */
};

/* A table of entries, ended by a row without a name. */
extern const struct entry opencl_entries[], vulkan_entries[], iree_entries[];

const struct entry *entry_find(const char *name);       /* NULL: not ours, or its API is not wanted */
void *bind_found(const struct entry *e, void *real);    /* remembers it; what the program gets instead */
void *bind_real_dlsym(void *handle, const char *name);  /* past our own hook */
const void *bind_next_ret(const void *code);            /* a `ret` of the same module, or NULL */
void *bind_as(const void *ret, void *handle, const char *name, const char *version);    /* dlsym, as if called from the module of that `ret` */

void bind_start(void);

/* bind_lock.c */
void bind_with_lock(void (*f)(void *), void *argument);  /* while it runs no module comes, goes or is half relocated */
bool bind_claim(void);                          /* sites and pages are ours to change; false: this thread has that already */
void bind_release(void);
void bind_read_list(int (*f)(struct dl_phdr_info *, size_t, void *), void *argument);   /* dl_iterate_phdr, but for a fork meanwhile */
void bind_mind_forks(void);

/* bind_got.c */
void bind_modules(void);                        /* looks at modules that came since the last time; asks ld.so */
bool bind_is_driver(const void *code);          /* in a loader, a layer or a driver: what these call is not the program's */

#endif
