/*
 * probe_memory.c - the heaps of libraries: what their own allocators gave out.
 *
 * Each heap has a pool of its own, like the memory of a device. A library takes its memory from the program's heap, where it
 * is counted already, so it is not added to any total; `own=1` on a row that allocates says that it is other memory, such as a
 * card's, which peak_with_devices counts. A release function that is for objects of all kinds says `any=1`: what it releases
 * need not be memory.
 */
#include "inside.h"

enum { BLOCKS_MAX = 1 << 22, TEXT_BYTES = 4096 };

static struct dev *heap_of(struct probed *c)
{
	char name[PROBE_NAME_MAX];
	const char *heap = probe_text(c->rule, "heap", &c->scope, name, sizeof(name)) ? name : c->rule->domain;

	if (!c->site->heap || strcmp(c->site->heap->d.title, heap))
		c->site->heap = dev_of_library(c->m, c->p, heap);
	return c->site->heap;
}

static struct heap_block *find(const struct proc *p, const struct dev *heap, u64 address)
{
	struct { u64 address, heap; } key = { address, heap->d.index };
	struct heap_block *b;

	HASH_FIND(hh, p->probes.blocks, &key, sizeof(key), b);
	return b;
}

static void end_block(struct probed *c, struct heap_block *b)
{
	struct open_memory *o = memory_find(c->p, b->id);

	if (o)
		memory_end(c->m, c->p, o, c->call.end);
	HASH_DELETE(hh, c->p->probes.blocks, b);
	free(b);
}

/* False: the address is not known, or there is none. */
static bool address_of(struct probed *c, u64 *address)
{
	struct handle at = probed_handle(c, "ptr");

	*address = at.value;
	c->m->s.losses.probe_values += !at.known && !c->unread;
	return at.known && at.value;
}

static void begin_block(struct probed *c, struct dev *heap, u64 address, u64 size)
{
	struct heap_block *b = new_zeroed(1, sizeof(*b));
	char text[TEXT_BYTES], label[PROBE_NAME_MAX];
	struct device_memory what = {
		.device = &heap->d, .tid = c->s->tid, .bytes = size, .length = size, .born = c->call.end, .node = c->call.node,
	};

	b->key.address = address;
	b->key.heap = heap->d.index;
	b->id = what.id = probed_new_number(c);
	HASH_ADD(hh, c->p->probes.blocks, key, sizeof(b->key), b);
	if (!probe_text(c->rule, "label", &c->scope, label, sizeof(label)))
		*label = 0;
	memory_begin(c->m, c->p, &what, probed_args(c, text, sizeof(text), c->site->function),
		     (struct arg_text) { label, (u32)strlen(label) });
}

void probed_alloc(struct probed *c)
{
	struct dev *heap = heap_of(c);
	struct heap_block *old;
	u64 address;
	i64 size;

	if (!address_of(c, &address))
		return;
	if (!probed_number(c, "size", &size) || size < 0) {
		c->m->s.losses.probe_values += !c->unread;
		return;
	}
	old = find(c->p, heap, address);
	if (old)                        /* nobody saw its end */
		end_block(c, old);
	if (HASH_COUNT(c->p->probes.blocks) >= BLOCKS_MAX) {
		c->m->s.losses.records++;
		return;
	}
	if (device_is_library(&heap->d) && !heap->d.heaps && probed_is(c, "own"))
		heap->d.flags &= ~(u32)DEVICE_HOST_MEMORY;
	begin_block(c, heap, address, (u64)size);
	c->bytes = (u64)size;
}

/* The record of a free may come after the one that says that its address was given again. */
static bool is_newer(const struct probed *c, const struct heap_block *b)
{
	const struct open_memory *o = memory_find(c->p, b->id);

	return o && o->m.born > c->call.begin;
}

void probed_free(struct probed *c)
{
	struct dev *heap = heap_of(c);
	struct heap_block *b;
	u64 address;

	if (!address_of(c, &address))
		return;
	b = find(c->p, heap, address);
	if (!b && !c->p->p.forked && !probed_is(c, "any"))
		c->m->s.losses.probe_frees++;
	if (b && !is_newer(c, b))
		end_block(c, b);
}

void heaps_release(struct probes *all)
{
	struct heap_block *b, *next;

	HASH_ITER(hh, all->blocks, b, next) {
		HASH_DEL(all->blocks, b);
		free(b);
	}
}
