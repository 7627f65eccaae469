/*
 * hook.h - the real functions behind our hooks.
 *
 * REAL(name) is for hooks that have entered a context: by then all pointers are known. A wrapper that
 * passes through unrecorded, perhaps before anything of ours has started, uses PASS(name), which may be
 * NULL while dlsym itself is asking for memory. Types come from the system's own prototypes.
 *
 * To add a hook: a name in HOOKS and a wrapper marked HOOKED in an api_*.c file. Functions that no system
 * header declares (C++ operators, other allocators' own names) are rows of the table in api_new.c.
 */
#ifndef HOOK_H
#define HOOK_H

#include "guest.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define HOOKS(X)                                                                                       \
	X(malloc) X(free) X(calloc) X(realloc) X(reallocarray) X(posix_memalign) X(aligned_alloc)      \
	X(memalign) X(valloc) X(pvalloc) X(malloc_usable_size)                                         \
	X(mmap) X(mmap64) X(munmap) X(mremap) X(mprotect) X(brk) X(sbrk)                               \
	X(fork) X(execve) X(execvpe) X(fexecve) X(posix_spawn) X(posix_spawnp) X(_exit)                \
	X(pthread_setname_np) X(pthread_getattr_np) X(prctl) X(dlclose)

struct reals {
#define X(name) __typeof__(name) *name;
	HOOKS(X)
#undef X
};

extern struct reals real;
#define REAL(name) (real.name)
#define PASS(name) (real.name ? real.name : (hooks_resolve(), real.name))

void hooks_resolve(void);                       /* find them all; harmless when called again */
void *hook_next(const char *name);              /* the next definition after ours, or NULL */
bool hook_same_module(const void *a, const void *b);

/* boot.c: blocks for dlsym itself, until the real malloc is known. Never given back. */
void *boot_alloc(size_t n, size_t align);
bool boot_owns(const void *p);
size_t boot_size(const void *p);

#endif
