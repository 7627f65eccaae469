/*
 * handles.c - open addressing with one word of key and one of value.
 *
 * A table that was outgrown stays mapped: a reader may still be in it, for as long as the scheduler likes. One that was only
 * full of removed places is used again, which its last readers notice by the count of changes: they look once more.
 */
#include "handles.h"
#include <string.h>

enum { FIRST = 256, POOL_BYTES = 1 << 16 };
#define REMOVED (~0ull)

struct handle_slot { u64 key; void *value; };
struct handle_table { u64 size, used; struct handle_slot slot[]; };     /* used: filled or removed */

void spin_wait(u32 *lock)
{
	u32 me = image && image->pid ? image->pid : (u32)sys_getpid(), holder;

	while ((holder = __atomic_load_n(lock, __ATOMIC_RELAXED)) == me ||
	       !__atomic_compare_exchange_n(lock, &holder, me, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		sys(SYS_sched_yield, 0, 0, 0);
}

static u64 first_place(const struct handle_table *t, u64 key)
{
	return (key * 0x9e3779b97f4a7c15ull >> 20) & (t->size - 1);
}

static void *find_in(const struct handle_table *t, u64 key)
{
	for (u64 i = first_place(t, key);; i = (i + 1) & (t->size - 1)) {
		u64 k = __atomic_load_n(&t->slot[i].key, __ATOMIC_ACQUIRE);

		if (!k)
			return NULL;
		if (k == key) {
			void *value = __atomic_load_n(&t->slot[i].value, __ATOMIC_ACQUIRE);

			if (__atomic_load_n(&t->slot[i].key, __ATOMIC_ACQUIRE) == key)
				return value;
		}
	}
}

void *handles_find(const struct handles *h, u64 key)
{
	u32 changes = __atomic_load_n(&h->changes, __ATOMIC_ACQUIRE), before;
	const struct handle_table *t;
	void *value;

	do {
		before = changes;
		t = __atomic_load_n(&h->table, __ATOMIC_ACQUIRE);
		value = t && key ? find_in(t, key) : NULL;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		changes = __atomic_load_n(&h->changes, __ATOMIC_RELAXED);
	} while (unlikely(changes != before));
	return value;
}

/* A removed place is not used again before the table grows: a reader may have just passed it. */
static void insert(struct handle_table *t, u64 key, void *value)
{
	u64 i = first_place(t, key);

	while (t->slot[i].key && t->slot[i].key != key)
		i = (i + 1) & (t->size - 1);
	t->used += !t->slot[i].key;
	__atomic_store_n(&t->slot[i].value, value, __ATOMIC_RELEASE);
	__atomic_store_n(&t->slot[i].key, key, __ATOMIC_RELEASE);
}

static u64 live_in(const struct handle_table *t)
{
	u64 n = 0;

	for (u64 i = 0; i < t->size; i++)
		n += t->slot[i].key && t->slot[i].key != REMOVED;
	return n;
}

/* Empty. A child may be forked at any point, so that it is nobody's spare any more comes first. */
static struct handle_table *empty_table(struct handles *h, u64 size)
{
	struct handle_table *t = h->spare;

	if (!t || t->size != size) {
		t = sys_memory(sizeof *t + size * sizeof *t->slot);
	} else {
		__atomic_store_n(&h->spare, NULL, __ATOMIC_RELEASE);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		memset(t->slot, 0, size * sizeof *t->slot);
		t->used = 0;
	}
	if (t)
		t->size = size;
	return t;
}

/*
 * A table is twice as large as the one before, so all those that stay mapped are as large as the last; or it is as large, if the
 * one before was only full of removed places, and then the two take turns.
 */
static bool grow(struct handles *h)
{
	struct handle_table *old = h->table, *fresh;

	fresh = empty_table(h, !old ? FIRST : live_in(old) * 4 > old->size ? old->size * 2 : old->size);
	if (!fresh)
		return false;
	for (u64 i = 0; old && i < old->size; i++)
		if (old->slot[i].key && old->slot[i].key != REMOVED)
			insert(fresh, old->slot[i].key, old->slot[i].value);
	__atomic_store_n(&h->table, fresh, __ATOMIC_RELEASE);
	__atomic_store_n(&h->spare, old, __ATOMIC_RELEASE);
	__atomic_store_n(&h->changes, h->changes + 1, __ATOMIC_RELEASE);
	return true;
}

static bool put(struct handles *h, u64 key, void *value)
{
	if ((!h->table || h->table->used * 2 >= h->table->size) && !grow(h))
		return false;
	insert(h->table, key, value);
	return true;
}

bool handles_put(struct handles *h, u64 key, void *value)
{
	bool ok;

	if (!key || key == REMOVED)
		return false;
	spin_lock(&h->lock);
	ok = put(h, key, value);
	spin_unlock(&h->lock);
	return ok;
}

void *handles_add(struct handles *h, u64 key, void *value)
{
	void *there;

	if (!key || key == REMOVED)
		return value;
	spin_lock(&h->lock);
	there = handles_find(h, key);
	if (!there)
		put(h, key, value);
	spin_unlock(&h->lock);
	return there ? there : value;
}

void *handles_remove(struct handles *h, u64 key)
{
	void *value = NULL;

	spin_lock(&h->lock);
	for (u64 i = h->table && key ? first_place(h->table, key) : 0; h->table && key && h->table->slot[i].key; i = (i + 1) & (h->table->size - 1))
		if (h->table->slot[i].key == key) {
			value = h->table->slot[i].value;
			__atomic_store_n(&h->table->slot[i].key, REMOVED, __ATOMIC_RELEASE);
			break;
		}
	spin_unlock(&h->lock);
	return value;
}

void handles_each(const struct handles *h, void (*f)(u64 key, void *value, void *to), void *to)
{
	const struct handle_table *t = __atomic_load_n(&h->table, __ATOMIC_ACQUIRE);

	for (u64 i = 0; t && i < t->size; i++) {
		u64 key = __atomic_load_n(&t->slot[i].key, __ATOMIC_ACQUIRE);

		if (key && key != REMOVED)
			f(key, t->slot[i].value, to);
	}
}

/* ---- objects ------------------------------------------------------------------------- */

struct pool_block { struct pool_block *before; char *end; };

static bool new_block(struct pool *p)
{
	size_t bytes = sizeof(struct pool_block) + (p->size > POOL_BYTES / 8 ? p->size * 8ul : POOL_BYTES);
	struct pool_block *b = sys_memory(bytes);

	if (!b)
		return false;
	b->before = p->blocks;
	b->end = (char *)b + bytes;
	__atomic_store_n(&p->next, NULL, __ATOMIC_RELEASE);     /* a child may be forked between any two of these */
	__atomic_store_n(&p->end, b->end, __ATOMIC_RELEASE);
	__atomic_store_n(&p->blocks, b, __ATOMIC_RELEASE);
	__atomic_store_n(&p->next, (char *)(b + 1), __ATOMIC_RELEASE);
	return true;
}

static void *carve(struct pool *p)
{
	void *object;

	if ((!p->next || p->end - p->next < (long)p->size) && !new_block(p))
		return NULL;
	object = p->next;
	p->next += p->size;
	return object;
}

void *pool_get(struct pool *p)
{
	void *object;

	spin_lock(&p->lock);
	object = p->free;
	if (object)
		p->free = *(void **)object;
	else
		object = carve(p);
	spin_unlock(&p->lock);
	if (object)
		memset(object, 0, p->size);
	return object;
}

void pool_put(struct pool *p, void *object)
{
	spin_lock(&p->lock);
	*(void **)object = p->free;
	p->free = object;
	spin_unlock(&p->lock);
}

void pool_each(const struct pool *p, void (*f)(void *object, void *to), void *to)
{
	for (const struct pool_block *b = __atomic_load_n(&p->blocks, __ATOMIC_ACQUIRE); b; b = b->before)
		for (char *object = (char *)(b + 1); b->end - object >= (long)p->size; object += p->size)
			f(object, to);
}
