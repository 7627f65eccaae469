/*
 * nodes.c - streams number their own nodes; here equal ones of all threads become one.
 *
 * A node gets its number when the first block that has it is met in time order, so that numbers do not depend
 * on how chunks arrived. The same address may be other code after a dlclose: the key holds the epoch in which
 * the module at that address was loaded. A module that comes back to its old place is the old one again.
 */
#include "inside.h"
#include "util/heap.h"

/* ---- modules ------------------------------------------------------------------------- */

/* Index into loaded[] of the first module that ends after addr. */
static u32 loaded_after(const struct proc *p, u64 addr)
{
	u32 low = 0, high = p->loads;

	while (low < high) {
		u32 mid = (low + high) / 2;

		if (p->p.module[p->loaded[mid]].end > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static u32 epoch_of(const struct proc *p, u64 pc)
{
	u32 i = loaded_after(p, pc - 1);
	const struct module *m = i < p->loads ? &p->p.module[p->loaded[i]] : NULL;

	return m && m->start < pc ? m->epoch_loaded : p->epoch;
}

static void unload(struct proc *p, u32 i, u64 ticks)
{
	struct module *m = &p->p.module[p->loaded[i]];

	m->gone = ticks;
	m->epoch_gone = p->epoch;
	p->loads--;
	memmove(&p->loaded[i], &p->loaded[i + 1], (p->loads - i) * sizeof(*p->loaded));
}

static bool same_module(const struct module *a, const struct module *b)
{
	return a->start == b->start && a->end == b->end && a->bias == b->bias && a->build_len == b->build_len &&
	       !memcmp(a->build_id, b->build_id, sizeof(a->build_id)) && !strcmp(a->path, b->path);
}

static u32 module_index(struct proc *p, struct module *new)
{
	u32 i;

	for (i = 0; i < p->p.modules; i++) {
		if (!same_module(&p->p.module[i], new))
			continue;
		free(new->path);
		return i;
	}
	ARRAY_ROOM(p->p.module, p->module_room, p->p.modules + 1);
	p->p.module[p->p.modules] = *new;
	return p->p.modules++;
}

/* Whatever lay there is gone, even if nobody said so. True: it is the same module again. */
static bool make_way(struct proc *p, u64 ticks, const struct module *new)
{
	u32 i = loaded_after(p, new->start);

	while (i < p->loads && p->p.module[p->loaded[i]].start < new->end) {
		if (same_module(&p->p.module[p->loaded[i]], new))
			return true;
		p->epoch++;
		unload(p, i, ticks);
	}
	return false;
}

static void insert_loaded(struct proc *p, u32 module)
{
	u32 i = loaded_after(p, p->p.module[module].start);

	ARRAY_ROOM(p->loaded, p->loaded_room, p->loads + 1);
	memmove(&p->loaded[i + 1], &p->loaded[i], (p->loads - i) * sizeof(*p->loaded));
	p->loaded[i] = module;
	p->loads++;
}

void module_loaded(struct proc *p, u64 ticks, const struct rec_module *r, const char *path, u32 len)
{
	struct module new = {
		.start = r->start, .end = r->end, .bias = r->bias, .loaded = ticks,
		.epoch_gone = UINT32_MAX, .build_len = r->build_len,
	};
	u32 at;

	if (r->start >= r->end || r->build_len > sizeof(new.build_id))
		return;
	memcpy(new.build_id, &r->build0, sizeof(new.build_id));
	new.path = text_copy(path, len);
	if (make_way(p, ticks, &new)) {
		free(new.path);
		return;
	}
	new.epoch_loaded = p->epoch;
	at = module_index(p, &new);
	p->p.module[at].gone = 0;
	p->p.module[at].epoch_gone = UINT32_MAX;
	insert_loaded(p, at);
}

void module_gone(struct proc *p, u64 ticks, u64 start)
{
	u32 i = loaded_after(p, start);

	p->epoch++;
	if (i < p->loads && p->p.module[p->loaded[i]].start == start)
		unload(p, i, ticks);
}

struct module *process_module(const struct process *p, u64 pc, u32 epoch)
{
	struct module *best = NULL;
	u32 i;

	for (i = 0; i < p->modules; i++) {
		struct module *m = &p->module[i];

		if (pc - 1 < m->start || pc - 1 >= m->end || epoch < m->epoch_loaded || epoch >= m->epoch_gone)
			continue;
		if (!best || m->epoch_loaded > best->epoch_loaded)
			best = m;
	}
	return best;
}

/* ---- nodes --------------------------------------------------------------------------- */

/*
 * Which node has this key? A dense table of node numbers, whose keys are the nodes themselves: programs have been seen
 * with 280 thousand nodes made in 0.2 s, and a uthash handle for each cost 80 bytes and a quarter of our time. Most are new,
 * which the hash tells without a look at other nodes.
 */
static u32 key_hash(const struct node *key)
{
	return (u32)((key->pc ^ (u64)key->parent * 0xd6e8feb86659fd93ull ^ (u64)key->epoch << 32) * 0x9e3779b97f4a7c15ull >> 32);
}

static bool same_key(const struct node *a, const struct node *b)
{
	return a->pc == b->pc && a->parent == b->parent && a->epoch == b->epoch;
}

static struct node_index *index_slot(const struct proc *p, const struct node *key, u32 hash)
{
	u32 mask = p->node_index_size - 1, i = hash & mask;
	const struct node_index *at;

	for (; (at = &p->node_index[i])->node; i = (i + 1) & mask)
		if (at->hash == hash && same_key(&p->p.node[at->node], key))
			break;
	return &p->node_index[i];
}

static void grow_index(struct proc *p)
{
	struct node_index *old = p->node_index;
	u32 old_size = p->node_index_size, mask, i, to;

	p->node_index_size = old_size ? old_size * 2 : 256;
	p->node_index = heap_table(p->node_index_size * sizeof(*p->node_index));
	memset(p->node_index, 0, p->node_index_size * sizeof(*p->node_index));
	mask = p->node_index_size - 1;
	for (i = 0; i < old_size; i++) {
		if (!old[i].node)
			continue;
		for (to = old[i].hash & mask; p->node_index[to].node; to = (to + 1) & mask)
			;
		p->node_index[to] = old[i];
	}
	free(old);
}

static u32 intern(struct proc *p, struct node key)
{
	struct process *q = &p->p;
	struct node_index *slot;
	u32 hash = key_hash(&key);

	slot = index_slot(p, &key, hash);
	if (!slot->node) {
		if (q->nodes >= NODE_MASK)
			return 0;
		ARRAY_ROOM(q->node, p->node_room, q->nodes + 1);
		q->node[0] = (struct node) { 0 };
		q->node[q->nodes] = key;
		*slot = (struct node_index) { hash, q->nodes++ };
	}
	return slot->node;
}

static void index_room(struct proc *p, u32 more)
{
	if (!p->p.nodes)                /* node 0 is "no frame" */
		p->p.nodes = 1;
	while ((p->p.nodes + more) * 4ull >= p->node_index_size * 3ull)
		grow_index(p);
}

/*
 * The places of a chain's nodes in the index come to the CPU's cache all at once, if it is as most are: where one node is new,
 * those inside of it are, too, and their numbers follow.
 */
static void fetch_chain(const struct proc *p, const struct link *chain, u32 n, u32 parent)
{
	u32 next = p->p.nodes, mask = p->node_index_size - 1;

	while (n--) {
		struct node key = { chain[n].pc, parent, chain[n].epoch };

		__builtin_prefetch(&p->node_index[key_hash(&key) & mask]);
		parent = next++;
	}
}

/* Outer frames first, because a node's key holds its parent's number. */
static u32 number_chain(struct model *m, struct proc *p, struct stream *s, u32 at)
{
	u32 n = 0, parent = 0;

	while (at && !s->number[at]) {
		u32 outer = stream_node(s, s->parent[at]);

		ARRAY_ROOM(m->chain, m->chain_room, n + 1);
		m->chain[n++] = (struct link) { s->pc[at], at, epoch_of(p, s->pc[at]) };
		if ((s->parent[at] && !outer) || outer >= at) {
			m->s.losses.stacks++;
			outer = 0;
		}
		at = outer;
	}
	if (at)
		parent = s->number[at];
	if (!n)
		return parent;
	index_room(p, n);
	fetch_chain(p, m->chain, n, parent);
	while (n--)
		parent = s->number[m->chain[n].at] = intern(p, (struct node) { m->chain[n].pc, parent, m->chain[n].epoch });
	return parent;
}

static u32 node_at(struct model *m, struct proc *p, struct stream *s, u32 at)
{
	return s->number[at] ? s->number[at] : number_chain(m, p, s, at);
}

static u32 known_node(struct model *m, const struct stream *s, u32 number)
{
	u32 at = stream_node(s, number);

	m->s.losses.stacks += number && !at;
	return at;
}

u32 node_of(struct model *m, struct proc *p, struct stream *s, u32 number)
{
	return node_at(m, p, s, known_node(m, s, number));
}

/* The row of malloc blocks with this stack; the decoder uses it from then on. */
u32 label_of(struct model *m, struct proc *p, struct stream *s, u32 number)
{
	u32 at = known_node(m, s, number);

	if (s->label[at] == LABEL_NONE)
		s->label[at] = row_of(p, node_at(m, p, s, at), POOL_MALLOC);
	return s->label[at];
}

void nodes_release(struct proc *p)
{
	free(p->node_index);
	p->node_index = NULL;
	p->node_index_size = 0;
	free(p->loaded);
	p->loaded = NULL;
	p->loads = p->loaded_room = 0;
}
