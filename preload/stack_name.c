/*
 * stack_name.c - a number for each frame with all outside of it, which a node record tells.
 *
 * A frame may get another number later: the table of those that are known stays as large as the CPU's cache, and what it has
 * forgotten is named again. Most stacks that are not in the table were never seen before, and to find that out in memory takes
 * longer than to walk a stack. Whoever receives the records finds out which frames are the same.
 */
#include "stack_name.h"
#include "buffer.h"
#include "stack.h"
#include "stack_hash.h"

enum {
	TABLE_FIRST = 1024,
	TABLE_MAX = 1 << 16,
	TABLE_WAYS = 4,
	NAMES_MAX = 1 << 22,        /* then numbers begin afresh: whoever receives them need not know more at a time */
	FETCH_MAX = 8,
};

u64 hash_power[STACK_SLOTS];

void stack_hash_start(void)
{
	if (hash_power[0])
		return;
	hash_power[1] = HASH_BASE;
	for (u32 i = 2; i < STACK_SLOTS; i++)
		hash_power[i] = hash_settle((hash_sum)hash_power[i - 1] * HASH_BASE);
	hash_power[0] = 1;
}

extern const char probe_common[], probe_common_end[];  /* the trampoline: probe_x86_64.S */

/* Whoever is called through it was called by its caller: it is no frame of the program. */
static bool is_trampoline(u64 pc) { return pc - (u64)probe_common < (u64)(probe_common_end - probe_common); }

static struct node_entry *table_line(const struct stack_cache *s, u64 chain)
{
	return &s->table[(u32)(chain >> 32) & (s->table_size - TABLE_WAYS)];
}

/* What is looked for stays: it changes places with the first one of its line, which is not given up. */
static u32 known(const struct stack_cache *s, u64 chain, u64 pc)
{
	struct node_entry *line, *e, found;

	if (unlikely(!s->table))
		return 0;
	for (line = e = table_line(s, chain); e < line + TABLE_WAYS; e++)
		if (e->chain == chain && e->pc == (u32)pc) {
			found = *e;
			*e = *line;
			*line = found;
			return found.node;
		}
	return 0;
}

/* Into a free place of its line, or that of another one. */
static void table_put(const struct stack_cache *s, struct node_entry new)
{
	struct node_entry *line = table_line(s, new.chain), *e = line;

	while (e < line + TABLE_WAYS && e->node)
		e++;
	*(e < line + TABLE_WAYS ? e : line + 1 + new.node % (TABLE_WAYS - 1)) = new;
}

static bool table_grow(struct stack_cache *s)
{
	struct node_entry *old = s->table;
	u32 old_size = s->table_size, size = old_size ? old_size * 2 : TABLE_FIRST;
	struct node_entry *fresh = sys_memory(sizeof *fresh * size);

	if (!fresh)
		return false;
	sys_huge(fresh, sizeof *fresh * size);  /* it is read at random: a TLB miss each time otherwise */
	s->table = fresh;
	s->table_size = size;
	for (u32 i = 0; i < old_size; i++)
		if (old[i].node)
			table_put(s, old[i]);
	if (old)
		sys_munmap(old, sizeof *old * old_size);
	return true;
}

static u32 name_new(struct context *c, u64 chain, u32 parent, u64 pc)
{
	struct stack_cache *s = &c->stacks;
	u32 node;

	if (unlikely(s->table_used * 2ull >= s->table_size && s->table_size < TABLE_MAX) && !table_grow(s) && !s->table)
		return 0;
	if (unlikely(c->nodes - s->names_before >= NAMES_MAX))
		stack_forget_later(c);
	node = parent && is_trampoline(pc) && !s->by_number ? parent : buffer_node(c, parent, pc);
	table_put(s, (struct node_entry){ chain, (u32)pc, node });
	s->table_used++;
	if (unlikely(s->by_number) && node < CHECKED_NODES)
		s->by_number[node] = (struct node_back){ pc, parent };
	return node;
}

/* Outermost first, from where they are known: a run's last frame is joined to what is outside of the run, or ends the stack. */
void stack_chain(struct stack_cache *s, u32 first, u32 end)
{
	u32 i = first;
	u64 chain = 0;

	while (i < end && s->extra[i].chain <= UNCHAINED)
		i++;
	if (i < end)
		chain = s->extra[i].chain;
	while (i-- > first)
		if (s->extra[i].chain == UNCHAINED)
			chain = s->extra[i].chain = chain_of(chain, s->arena[i].value);
}

static void fetch_name(const struct stack_cache *s, u64 chain)
{
	if (likely(s->table))
		__builtin_prefetch(table_line(s, chain));
}

/*
 * Chains of the next few frames outwards; `chain` and `pc` are of the frame inside of them.
 * The table is larger than the nearest of the CPU's caches, and the frames of a new stack are looked for one by one: all at once takes
 * as long as one.
 */
static void fetch_names(struct stack_cache *s, u64 chain, u64 pc, u32 first, u32 end)
{
	for (u32 frames = 0; first < end && frames < FETCH_MAX; first++) {
		if (!s->extra[first].chain)
			continue;
		chain = chain_outside(chain, pc);
		pc = s->arena[first].value;
		s->extra[first].chain = chain;
		fetch_name(s, chain);
		frames++;
	}
}

/* The first frame outwards that has a number; *at: its slot, or the end. */
static u32 first_known(struct stack_cache *s, u64 chain, u64 pc, u32 *at, u32 end)
{
	u32 node;

	for (; *at < end; ++*at) {
		u64 *here = &s->extra[*at].chain;

		if (!*here)
			continue;
		if (*here == UNCHAINED)
			*here = chain_outside(chain, pc);
		chain = *here;
		pc = s->arena[*at].value;
		if ((node = known(s, chain, pc)))
			return node;
	}
	return 0;
}

u32 stack_name(struct context *c, u64 chain, u64 pc, u32 first, u32 slots, bool joined)
{
	struct stack_cache *s = &c->stacks;
	bool likely_new = s->last_was_new;
	u32 node, i = first;

	fetch_name(s, chain);
	if (likely_new)
		fetch_names(s, chain, pc, first, first + slots);
	node = known(s, chain, pc);
	s->last_was_new = !node;
	if (node)
		return node;
	if (!likely_new)
		fetch_names(s, chain, pc, first, first + slots);
	node = first_known(s, chain, pc, &i, first + slots);
	if (unlikely(!node && joined))
		return 0;
	while (i-- > first)
		if (s->extra[i].chain)
			node = name_new(c, s->extra[i].chain, node, s->arena[i].value);
	return name_new(c, chain, node, pc);
}

void stack_names_forget(struct stack_cache *s)
{
	if (s->table)
		sys_munmap(s->table, sizeof *s->table * s->table_size);
	s->table = NULL;
	s->table_size = s->table_used = 0;
}
