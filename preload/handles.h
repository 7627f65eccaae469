/*
 * handles.h - an API's handle -> what we know of the object.
 *
 * Reading takes no lock: wrappers of the hot calls (vkCmdDispatch, clEnqueueNDRangeKernel) begin with it. Changes do,
 * for a moment, and never around a real call. What is looked up belongs to an object that the program holds, so it is
 * not removed meanwhile.
 */
#ifndef HANDLES_H
#define HANDLES_H

#include "slots.h"

struct handles { struct handle_table *table, *spare; u32 changes, lock; };

void *handles_find(const struct handles *h, u64 key);           /* NULL: unknown */
bool handles_put(struct handles *h, u64 key, void *value);      /* an older value of the key is replaced */
void *handles_add(struct handles *h, u64 key, void *value);     /* an older value stays; what is there afterwards */
void *handles_remove(struct handles *h, u64 key);               /* what was there */
void handles_each(const struct handles *h, void (*f)(u64 key, void *value, void *to), void *to);

/* Objects of one size, zeroed; memory that is given back is used again, never unmapped. */
struct pool { void *free; struct pool_block *blocks; char *next, *end; u32 size, lock; };

#define POOL(type) { .size = sizeof(type) < 16 ? 16 : (sizeof(type) + 15) & ~15u }
void *pool_get(struct pool *p);
void pool_put(struct pool *p, void *object);
void pool_each(const struct pool *p, void (*f)(void *object, void *to), void *to);      /* all, also those that were given back */

/*
 * Held for a few instructions, and never around a real call. A lock is the number of the process that holds it: what
 * another thread held when this process was forked is held by nobody, and is taken over. So what a lock guards must make
 * sense after each single store.
 */
void spin_wait(u32 *lock);

static inline void spin_lock(u32 *lock)
{
	u32 nobody = 0;

	if (unlikely(!image || !image->pid || !__atomic_compare_exchange_n(lock, &nobody, image->pid, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)))
		spin_wait(lock);
}

static inline void spin_unlock(u32 *lock)
{
	__atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
