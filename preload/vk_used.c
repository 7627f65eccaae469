/*
 * vk_used.c - which ranges of a large buffer commands use.
 *
 * IREE and ncnn bind one buffer over each block and sub-allocate inside of it, where nobody is told. But commands name
 * ranges: those of descriptors (vk_sets.c), of copies and fills. Each distinct one is told once, with who used it first.
 */
#include "vk.h"

enum { PLACES = 1024, PIECES_MAX = PLACES * 3 / 4 };

/* Found by offset and length; nothing is taken out. An entry counts once its length is there, so reading takes no lock. */
struct vk_pieces { u32 lock, count; u64 more; struct { u64 offset, length; } at[PLACES]; };

static struct pool piece_pool = POOL(struct vk_pieces);

static u32 place_of(u64 offset, u64 length) { return (u32)((offset * 31 + length) * 0x9e3779b97f4a7c15 >> 54); }
_Static_assert(PLACES == 1 << (64 - 54), "the hash gives places");

/* Where it is, or a free place: there always is one. */
static u32 piece_find(const struct vk_pieces *p, u64 offset, u64 length, bool *there)
{
	u32 i = place_of(offset, length);
	u64 found;

	while ((found = __atomic_load_n(&p->at[i].length, __ATOMIC_ACQUIRE)) && (found != length || p->at[i].offset != offset))
		i = (i + 1) % PLACES;
	*there = found;
	return i;
}

/* False: it is there already, or there is no room. */
static bool piece_add(struct vk_pieces *p, u64 offset, u64 length)
{
	bool there, room;
	u32 i;

	spin_lock(&p->lock);
	i = piece_find(p, offset, length, &there);
	room = p->count < PIECES_MAX;
	if (!there && room) {
		p->count++;
		p->at[i].offset = offset;
		__atomic_store_n(&p->at[i].length, length, __ATOMIC_RELEASE);
	}
	spin_unlock(&p->lock);
	return !there && room;
}

static struct vk_pieces *pieces_of(struct vk_slab *s)
{
	struct vk_pieces *p = __atomic_load_n(&s->pieces, __ATOMIC_ACQUIRE), *none = NULL, *made;

	if (p)
		return p;
	made = pool_get(&piece_pool);
	if (!made || __atomic_compare_exchange_n(&s->pieces, &none, made, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return made;
	pool_put(&piece_pool, made);
	return none;
}

/* Uses that there was no room for are counted, and told each time that they have doubled. */
static void left_out(const struct vk_slab *s, struct vk_pieces *p)
{
	u64 more = __atomic_add_fetch(&p->more, 1, __ATOMIC_RELAXED);

	if (!(more & (more - 1)))
		memory_used_note(&(struct rec_memory_used){ .id = s->id, .more = more });
}

void vk_slab_use(struct vk_slab *s, u64 offset, u64 length, u64 name)
{
	struct vk_pieces *p = s && s->id && length && offset < s->bytes ? pieces_of(s) : NULL;
	bool there;

	if (!p)
		return;
	if (length > s->bytes - offset)         /* VK_WHOLE_SIZE, too */
		length = s->bytes - offset;
	piece_find(p, offset, length, &there);
	if (there)
		return;
	if (piece_add(p, offset, length))
		memory_used_note(&(struct rec_memory_used){ .id = s->id, .offset = offset, .length = length, .name = name });
	else if (__atomic_load_n(&p->count, __ATOMIC_RELAXED) >= PIECES_MAX)
		left_out(s, p);
}

void vk_slab_missed(struct vk_slab *s)
{
	struct vk_pieces *p = s && s->id ? pieces_of(s) : NULL;

	if (p)
		left_out(s, p);
}

/* Before its buffer is said to be gone. */
void vk_slab_end(const struct vk_slab *s)
{
	struct vk_pieces *p = s->pieces;

	if (p && p->more)
		memory_used_note(&(struct rec_memory_used){ .id = s->id, .more = p->more });
	if (p)
		pool_put(&piece_pool, p);
}

/* ---- what is bound for the next dispatch ---------------------------------------------------------------- */

/* A set may name a buffer that is gone, as long as no kernel looks. */
static bool is_there(const struct vk_use *use) { return use->slab->id == use->id; }

static void use_tell(const struct vk_use *use, u64 name)
{
	if (is_there(use))
		vk_slab_use(use->slab, use->offset, use->length, name);
}

void vk_use_missed(const struct vk_use *use)
{
	if (is_there(use))
		vk_slab_missed(use->slab);
}

void vk_uses_add(struct vk_command_buffer *c, const struct vk_use *use)
{
	struct vk_uses *u = &c->uses;

	if (u->count < VK_USES)
		u->at[u->count++] = *use;
	else                                    /* by whom remains open */
		use_tell(use, 0);
}

/* Another is bound there. binding ~0: all of the set. */
void vk_uses_drop(struct vk_command_buffer *c, u32 slot, u32 binding, u32 element)
{
	struct vk_uses *u = &c->uses;
	u32 kept = 0;

	for (u32 i = 0; i < u->count; i++)
		if (u->at[i].slot != slot || (binding != ~0u && (u->at[i].binding != binding || u->at[i].element != element)))
			u->at[kept++] = u->at[i];
	u->count = kept;
}

void vk_uses_tell(struct vk_command_buffer *c, u64 name)
{
	for (u32 i = 0; i < c->uses.count; i++)
		use_tell(&c->uses.at[i], name);
	c->uses.count = 0;
}
