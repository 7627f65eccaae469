/*
 * api_heap.c - the malloc family.
 *
 * errno is the real function's: nothing of ours that runs after it touches errno. A call that fails is not an event.
 */
#include "iree.h"
#include "note.h"
#include "vk_bell.h"
#include <errno.h>
#include <string.h>

/* ---- before the real functions are known, or inside of one ---------------------------- */

static __attribute__((noinline)) void *pass_malloc(size_t size)
{
	return PASS(malloc) ? real.malloc(size) : boot_alloc(size, 16);
}

static __attribute__((noinline)) void *pass_calloc(size_t n, size_t size)
{
	size_t bytes;

	if (PASS(calloc))
		return real.calloc(n, size);
	return __builtin_mul_overflow(n, size, &bytes) ? NULL : boot_alloc(bytes, 16);  /* never used before: zero */
}

static __attribute__((noinline)) void *pass_memalign(size_t align, size_t size)
{
	return PASS(memalign) ? real.memalign(align, size) : boot_alloc(size, align);
}

/* A block from dlsym's early days moves to the real heap. */
static __attribute__((noinline)) void *move_from_boot(void *old, size_t size)
{
	size_t had = boot_size(old);
	void *p = malloc(size);

	if (p)
		memcpy(p, old, had < size ? had : size);
	return p;
}

static __attribute__((noinline)) void *pass_realloc(void *old, size_t size)
{
	return PASS(realloc) ? real.realloc(old, size) : boot_alloc(size, 16);
}

static __attribute__((noinline)) void look_at_free(void *p)
{
	if (guest.bells)
		vk_bell_hear();
	if (guest.slabs)
		iree_block_gone(p);
}

/* ---- hooks --------------------------------------------------------------------------- */

HOOKED void *malloc(size_t size)
{
	struct visit v = context_enter(FRAME());
	void *p;

	if (unlikely(!v.context))
		return pass_malloc(size);
	stack_fetch(v.context);
	p = REAL(malloc)(size);
	if (likely(p))
		note_alloc_inline(v, p, size, CALLER());
	context_leave(v);
	return p;
}

HOOKED void free(void *p)
{
	struct visit v;

	if (!p || unlikely(boot_owns(p)))
		return;
	if (unlikely(guest.slabs | guest.bells))
		look_at_free(p);
	v = context_enter(FRAME());
	if (unlikely(!v.context)) {
		if (PASS(free))
			real.free(p);
		return;
	}
	note_free(v, p);
	REAL(free)(p);
	context_leave(v);
}

HOOKED void *calloc(size_t n, size_t size)
{
	struct visit v = context_enter(FRAME());
	void *p;

	if (unlikely(!v.context))
		return pass_calloc(n, size);
	p = REAL(calloc)(n, size);
	if (likely(p))
		note_alloc(v, p, (u64)n * size, CALLER());
	context_leave(v);
	if (unlikely(iree_may_be((u64)n * size)) && p && guest.control->apis & API_IREE)
		iree_block_new(p, (u64)n * size);
	return p;
}

/*
 * realloc(NULL, n) is an alloc; realloc(p, 0) frees where the real one returns NULL for it (glibc) and moves where it
 * does not; a failure leaves the old block as it was.
 */
static inline void *realloc_noted(struct visit v, void *old, size_t size, struct caller at)
{
	u64 before = note_move_begin(v);
	void *p = REAL(realloc)(old, size);

	if (p && old)
		note_move(v, before, old, p, size, at);
	else if (old && !size)
		note_moved_away(v, before, old);
	else
		note_not_moved(v);
	if (p && !old)
		note_alloc(v, p, size, at);
	context_leave(v);
	return p;
}

HOOKED void *realloc(void *old, size_t size)
{
	struct visit v;

	if (unlikely(old && boot_owns(old)))
		return move_from_boot(old, size);
	if (unlikely(guest.slabs) && old)
		iree_block_gone(old);
	v = context_enter(FRAME());
	if (unlikely(!v.context))
		return pass_realloc(old, size);
	return realloc_noted(v, old, size, CALLER());
}

HOOKED void *reallocarray(void *old, size_t n, size_t size)
{
	size_t bytes;
	struct visit v;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	if (unlikely(old && boot_owns(old)))
		return move_from_boot(old, bytes);
	if (unlikely(guest.slabs) && old)
		iree_block_gone(old);
	v = context_enter(FRAME());
	if (unlikely(!v.context))
		return pass_realloc(old, bytes);
	return realloc_noted(v, old, bytes, CALLER());
}

HOOKED int posix_memalign(void **out, size_t align, size_t size)
{
	struct visit v = context_enter(FRAME());
	int error;

	if (unlikely(!v.context))
		return PASS(posix_memalign) ? real.posix_memalign(out, align, size) : (*out = boot_alloc(size, align)) ? 0 : ENOMEM;
	error = REAL(posix_memalign)(out, align, size);
	if (!error && *out)
		note_alloc(v, *out, size, CALLER());
	context_leave(v);
	return error;
}

#define ALIGNED(name, params, args, pass)                                                              \
	HOOKED void *name params                                                                       \
	{                                                                                              \
		struct visit v = context_enter(FRAME());                                               \
		void *p;                                                                               \
                                                                                                       \
		if (unlikely(!v.context))                                                              \
			return PASS(name) ? real.name args : pass;                                     \
		p = REAL(name) args;                                                                   \
		if (likely(p))                                                                         \
			note_alloc(v, p, size, CALLER());                                              \
		context_leave(v);                                                                      \
		return p;                                                                              \
	}

ALIGNED(aligned_alloc, (size_t align, size_t size), (align, size), pass_memalign(align, size))
ALIGNED(memalign, (size_t align, size_t size), (align, size), boot_alloc(size, align))
ALIGNED(valloc, (size_t size), (size), pass_memalign(4096, size))
ALIGNED(pvalloc, (size_t size), (size), pass_memalign(4096, size))

HOOKED size_t malloc_usable_size(void *p)
{
	if (p && boot_owns(p))
		return boot_size(p);
	return PASS(malloc_usable_size) ? real.malloc_usable_size(p) : 0;
}

/* C23; the real ones are free where libc does not have them yet, and the program calls them only where it does. */
HOOKED void free_sized(void *p, size_t size)
{
	(void)size;
	free(p);
}

HOOKED void free_aligned_sized(void *p, size_t align, size_t size)
{
	(void)align;
	(void)size;
	free(p);
}
