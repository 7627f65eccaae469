/*
 * probe_memory.c - the heaps of libraries: what their own allocators gave out.
 *
 * Each heap has a pool of its own, like the memory of a device. A library takes its memory from the program's heap, where it
 * is counted already, so it is not added to any total; `own=1` on a row that allocates says that it is other memory, such as a
 * card's, which peak_with_devices counts. A release function that is for objects of all kinds says `any=1`: what it releases
 * need not be memory. What a row says lies `in` other memory of the heap has no bytes of its own: a buffer in a larger block.
 * Objects that are counted by their holders end with the last one. What `was` elsewhere ends when it is given its new place, as by realloc.
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

/* The number of what it lies in; 0: it is memory itself. */
static u64 parent_of(const struct probed *c, const struct dev *heap)
{
	struct handle in = probed_handle(c, "in");
	const struct heap_block *b = in.known ? find(c->p, heap, in.value) : NULL;

	return b ? b->id : 0;
}

static void begin_block(struct probed *c, struct dev *heap, u64 address, u64 size)
{
	struct heap_block *b = new_zeroed(1, sizeof(*b));
	char text[TEXT_BYTES], label[PROBE_NAME_MAX];
	struct device_memory what = {
		.device = &heap->d, .tid = c->s->tid, .parent = parent_of(c, heap), .length = size, .born = c->call.end, .node = c->call.node,
	};

	what.bytes = what.parent ? 0 : size;
	b->key.address = address;
	b->key.heap = heap->d.index;
	b->id = what.id = probed_new_number(c);
	HASH_ADD(hh, c->p->probes.blocks, key, sizeof(b->key), b);
	if (!probe_text(c->rule, "label", &c->scope, label, sizeof(label)))
		*label = 0;
	memory_begin(c->m, c->p, &what, probed_args(c, text, sizeof(text), c->site->function),
		     (struct arg_text) { label, (u32)strlen(label) });
}

/* The record of a free may come after the one that says that its address was given again. */
static bool is_newer(const struct probed *c, const struct heap_block *b)
{
	const struct open_memory *o = memory_find(c->p, b->id);

	return o && o->m.born > c->call.begin;
}

/* The block that the call was given, to be moved or resized. A size of 0 ends it; no new place for more than that leaves it as it is. */
static void end_former(struct probed *c, const struct dev *heap, u64 address, i64 size)
{
	struct handle was = probed_handle(c, "was");
	struct heap_block *b = was.known && (address || !size) ? find(c->p, heap, was.value) : NULL;

	if (b && was.value != address && !is_newer(c, b))
		end_block(c, b);
}

void probed_alloc(struct probed *c)
{
	struct dev *heap = heap_of(c);
	struct heap_block *old;
	bool placed;
	u64 address;
	i64 size;

	placed = address_of(c, &address);
	if (!probed_number(c, "size", &size) || size < 0) {
		c->m->s.losses.probe_values += placed && !c->unread;
		return;
	}
	end_former(c, heap, address, size);
	if (!placed)
		return;
	old = find(c->p, heap, address);
	if (old && probed_is_around(c, address))
		return;
	if (old)                        /* nobody saw its end */
		end_block(c, old);
	if (HASH_COUNT(c->p->probes.blocks) >= BLOCKS_MAX) {
		c->m->s.losses.records++;
		return;
	}
	if (device_is_library(&heap->d) && !heap->d.heaps && probed_is(c, "own"))
		heap->d.flags &= ~(u32)DEVICE_HOST_MEMORY;
	begin_block(c, heap, address, (u64)size);
	probed_has_done(c, address);
	c->bytes = (u64)size;
}

void probed_free(struct probed *c)
{
	struct dev *heap = heap_of(c);
	struct heap_block *b;
	u64 address;

	if (!address_of(c, &address))
		return;
	b = find(c->p, heap, address);
	if (!b && !c->p->p.forked && !probed_is(c, "any") && !probed_is_around(c, address))
		c->m->s.losses.probe_frees++;
	if (!b || is_newer(c, b))
		return;
	if (b->holders)
		b->holders--;
	else
		end_block(c, b);
	probed_has_done(c, address);
}

void probed_retain(struct probed *c)
{
	struct heap_block *b;
	u64 address;

	b = address_of(c, &address) ? find(c->p, heap_of(c), address) : NULL;
	if (b)
		b->holders++;
}

void probed_label(struct probed *c, u64 address, const char *label)
{
	const struct heap_block *b = find(c->p, heap_of(c), address);

	if (b)
		memory_label(c->m, c->p, b->id, (struct arg_text) { label, (u32)strlen(label) });
}

void heaps_release(struct probes *all)
{
	struct heap_block *b, *next;

	HASH_ITER(hh, all->blocks, b, next) {
		HASH_DEL(all->blocks, b);
		free(b);
	}
}
