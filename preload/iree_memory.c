/*
 * iree_memory.c - buffers that IREE's task device takes from its pool.
 *
 * The pool lies in slabs that come from calloc, so that the heap shows one block of 64 MiB. Each buffer in it has a header
 * of its own from calloc, which goes when the buffer does:
 *
 *   @24 length  ...  @120 address  @128 length                160 bytes
 *
 * That is how IREE 3.13 lays it out, which nobody has promised: a block of that size is taken for a header if its address
 * lies in a slab, the buffer ends in it, and the two lengths agree. When calloc returns it is empty still; it is looked at
 * when the next dispatch begins, or when it is freed. Blocks that are no headers are forgotten after two looks. A buffer
 * that is not recognised stays what it is without us: part of a block of the heap.
 */
#include "handles.h"
#include "iree.h"

enum { HEADER_LENGTH = 24, HEADER_ADDRESS = 120, HEADER_LENGTH_AGAIN = 128, SETS = 1024, WAYS = 4, SLABS = 32, NEW = 256, LOOKS = 2 };

/* A block that may be a header. */
struct watched {
	u64 at;                         /* 0: none */
	u64 memory;                     /* its number once it was told, else 0 */
	u32 looks;
};

static struct watched table[SETS][WAYS];
static struct { u64 start, end; } slabs[SLABS];
static struct watched *new[NEW];        /* not yet looked at often enough */
static u32 news, lock;
static u64 born;                        /* image that all this belongs to: a child's is another one */

static struct watched *set_of(u64 at) { return table[(at >> 4) * 0x9e3779b1u >> 12 & (SETS - 1)]; }

static void forget_if_forked(void)
{
	if (likely(born == process_born()))
		return;
	for (u32 i = 0; i < SETS; i++)
		for (u32 k = 0; k < WAYS; k++)
			table[i][k].at = 0;
	news = 0;
	born = process_born();
}

static bool in_slab(u64 at, u64 bytes)
{
	for (u32 i = 0; i < SLABS; i++)
		if (at >= slabs[i].start && at < slabs[i].end)
			return bytes <= slabs[i].end - at;
	return false;
}

/* ---- telling ---------------------------------------------------------------------------------- */

struct buffer { u64 memory, address, bytes; };

/* With the lock held: is it a header that was not told of yet? */
static bool is_header(struct watched *w, struct buffer *b)
{
	const u64 *words = (const u64 *)w->at;

	if (w->memory || !sys_readable(words) || !sys_readable((const char *)words + IREE_HEADER_BYTES - 8))
		return false;
	*b = (struct buffer){ .address = words[HEADER_ADDRESS / 8], .bytes = words[HEADER_LENGTH / 8] };
	if (!b->bytes || b->bytes != words[HEADER_LENGTH_AGAIN / 8] || !in_slab(b->address, b->bytes))
		return false;
	b->memory = w->memory = memory_number();
	return true;
}

static void tell(const struct buffer *b)
{
	struct rec_device_alloc r = { .id = b->memory, .device = iree_device(), .bytes = b->bytes, .length = b->bytes, .flags = MEMORY_HOST_VISIBLE };
	struct args a = { 0 };

	args_word(&a, "buffer of the pool");
	args_hex(&a, "address", b->address);
	memory_note_bare(&r, &a);
}

/* ---- blocks come, are looked at, and go ----------------------------------------------------------- */

static void watch(u64 at)
{
	struct watched *set = set_of(at);

	for (u32 i = 0; i < WAYS; i++)
		if (!set[i].at && news < NEW) {
			set[i] = (struct watched){ .at = at };
			new[news++] = &set[i];
			return;
		}
}

static void slab_new(u64 at, u64 bytes)
{
	for (u32 i = 0; i < SLABS; i++)
		if (!slabs[i].end) {
			slabs[i].start = at;
			slabs[i].end = at + bytes;
			__atomic_add_fetch(&guest.slabs, 1, __ATOMIC_RELAXED);
			return;
		}
}

void iree_block_new(const void *p, u64 bytes)
{
	struct visit v = context_enter(FRAME());

	if (!v.context)
		return;
	spin_lock(&lock);
	forget_if_forked();
	if (bytes >= IREE_SLAB_BYTES)
		slab_new((u64)p, bytes);
	else
		watch((u64)p);
	spin_unlock(&lock);
	context_leave(v);
}

/* With the lock held: what is found of the next new block; false: none is left. */
static bool look_at_next(u32 *at, struct buffer *b)
{
	struct watched *w;

	b->memory = 0;
	if (*at >= news)
		return false;
	w = new[*at];
	if (w->at && !w->memory && !is_header(w, b) && ++w->looks < LOOKS) {
		++*at;
		return true;
	}
	if (!w->memory)
		w->at = 0;
	new[*at] = new[--news];
	return true;
}

void iree_blocks_look(void)
{
	struct buffer b = { 0 };
	bool more = true;

	for (u32 at = 0; more && __atomic_load_n(&news, __ATOMIC_RELAXED);) {
		struct visit v = context_enter(FRAME());

		if (!v.context)
			return;
		spin_lock(&lock);
		more = look_at_next(&at, &b);
		spin_unlock(&lock);
		context_leave(v);
		if (b.memory)
			tell(&b);
	}
}

static void slab_gone(u64 at)
{
	for (u32 i = 0; i < SLABS; i++)
		if (slabs[i].start == at && slabs[i].end) {
			slabs[i].start = slabs[i].end = 0;
			__atomic_sub_fetch(&guest.slabs, 1, __ATOMIC_RELAXED);
		}
}

/* Lock-free for what is not watched: every free of the program comes here once there is a slab. */
static struct watched *watched(u64 at)
{
	struct watched *set = set_of(at);

	for (u32 i = 0; i < WAYS; i++)
		if (__atomic_load_n(&set[i].at, __ATOMIC_RELAXED) == at)
			return &set[i];
	return NULL;
}

static bool is_slab(u64 at)
{
	bool is = false;

	for (u32 i = 0; i < SLABS; i++)
		is |= __atomic_load_n(&slabs[i].start, __ATOMIC_RELAXED) == at;
	return is;
}

void iree_block_gone(const void *p)
{
	struct watched *w = watched((u64)p);
	struct buffer b = { 0 };
	struct visit v;
	u64 memory = 0;

	if (likely(!w && !is_slab((u64)p)))
		return;
	v = context_enter(FRAME());
	if (!v.context) {
		if (w)
			__atomic_store_n(&w->at, 0, __ATOMIC_RELAXED);
		return;
	}
	spin_lock(&lock);
	forget_if_forked();
	if (w && w->at == (u64)p) {
		is_header(w, &b);
		memory = w->memory;
		w->at = 0;
	} else {
		slab_gone((u64)p);
	}
	spin_unlock(&lock);
	context_leave(v);
	if (b.memory)
		tell(&b);
	if (memory)
		memory_gone_note(memory);
}
