/*
 * iree.h - IREE's CPU executables: each dispatch and who ran its tiles, without rebuilding anything.
 *
 * A compiled model brings executables: small ELF images with a table of kernels. IREE calls a kernel once for each tile
 * (workgroup) of a dispatch, from as many threads as it has workers. The table may be changed, so we put thunks in it:
 *
 *   iree.c            an image was loaded: is it an executable of a version we know? then its table leads to us
 *   iree_x86_64.S     the thunks, which say which kernel was meant
 *   iree_tiles.c      tiles -> dispatches, and each thread's runs of tiles
 *   iree_memory.c     buffers in the pool of IREE's task device
 */
#ifndef IREE_H
#define IREE_H

#define IREE_THUNKS 8192                /* kernels of all executables that are loaded at one time */
#define IREE_THUNK_BYTES 16

#ifndef __ASSEMBLER__

#include "device.h"

/* ---- IREE's side: what it passes to a kernel, in library versions 5 and 6 ------------------- */

struct iree_dispatch {
	u32 size_x, size_y;
	u16 size_z, constant_count;
	u32 x, y;                       /* tiles */
	u16 z;
	u8 max_concurrency, binding_count;
	const u32 *constants;
	void *const *bindings;
	const size_t *lengths;
};

struct iree_tile_id {
	u32 x, y;
	u16 z;
};

typedef int iree_kernel(const void *environment, const struct iree_dispatch *d, const struct iree_tile_id *id);

/* ---- what is loaded and unloaded -------------------------------------------------------------- */

extern u32 iree_images;                         /* executables that lead to us */

void iree_protected(const void *addr, size_t length, int prot);         /* mprotect went well */
void iree_unmapping(const void *addr, size_t length);                   /* munmap is about to */
void iree_unloaded(void);                                               /* dlclose unloaded something */

/* ---- blocks of the heap ------------------------------------------------------------------------- */

#define IREE_HEADER_BYTES 160
#define IREE_SLAB_BYTES ((64ul << 20) + 72)

void iree_block_new(const void *p, u64 bytes);  /* from calloc */
void iree_block_gone(const void *p);            /* before it is freed */
void iree_blocks_look(void);

static inline bool iree_may_be(u64 bytes) { return bytes >= IREE_SLAB_BYTES || (bytes == IREE_HEADER_BYTES && guest.slabs); }

/* ---- between the files ---------------------------------------------------------------------- */

/* What a thunk stands for. */
struct iree_export {
	u64 name;                       /* its number */
	u64 queue;
	u32 next;                       /* of its image, or of those that are free */
	struct args args;
};

extern iree_kernel *iree_real[IREE_THUNKS];
extern struct iree_export *iree_export;         /* IREE_THUNKS of them, once there is an executable */

bool iree_tiles_start(void);
u64 iree_device(void);                          /* its number */

#endif
#endif
