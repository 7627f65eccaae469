/*
 * stack_name.c - a number for each frame with all outside of it; a number is sent once, by a node record.
 */
#include "stack_name.h"
#include "buffer.h"
#include "stack_hash.h"

enum { TABLE_FIRST = 1024, FETCH_MAX = 8 };

u64 hash_power[STACK_SLOTS];

void stack_hash_start(void)
{
	if (hash_power[0])
		return;
	hash_power[1] = 0x1b8735939e3779b9ull;
	for (u32 i = 2; i < STACK_SLOTS; i++)
		hash_power[i] = hash_settle((hash_sum)hash_power[i - 1] * hash_power[1]);
	hash_power[0] = 1;
}

extern const char probe_common[], probe_common_end[];  /* the trampoline: probe_x86_64.S */

/* Whoever is called through it was called by its caller: it is no frame of the program. */
static bool is_trampoline(u64 pc) { return pc - (u64)probe_common < (u64)(probe_common_end - probe_common); }

static u32 table_first(const struct stack_cache *s, u64 chain) { return (u32)(chain >> 32) & (s->table_size - 1); }

static struct node_entry *table_slot(const struct stack_cache *s, u64 chain, u64 pc)
{
	u32 i = table_first(s, chain);

	while (s->table[i].node && (s->table[i].chain != chain || s->table[i].pc != (u32)pc))
		i = (i + 1) & (s->table_size - 1);
	return &s->table[i];
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
			*table_slot(s, old[i].chain, old[i].pc) = old[i];
	if (old)
		sys_munmap(old, sizeof *old * old_size);
	return true;
}

static u32 known(const struct stack_cache *s, u64 chain, u64 pc)
{
	return likely(s->table) ? table_slot(s, chain, pc)->node : 0;
}

static u32 name_new(struct context *c, u64 chain, u32 parent, u64 pc)
{
	struct stack_cache *s = &c->stacks;
	u32 node;

	if (unlikely(s->table_used * 8ull >= s->table_size * 5ull) && !table_grow(s))
		return 0;
	if (unlikely(c->nodes >= NODE_MASK - 1))
		return 0;
	node = parent && is_trampoline(pc) && !s->by_number ? parent : buffer_node(c, parent, pc);
	*table_slot(s, chain, pc) = (struct node_entry){ chain, (u32)pc, node };
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

/* The table is larger than the CPU's cache, and a stack that is new is looked for frame by frame: all at once takes as long as one. */
static void fetch_names(struct stack_cache *s, u64 chain, u32 first, u32 end)
{
	if (s->table)
		__builtin_prefetch(&s->table[table_first(s, chain)]);
	stack_chain(s, first, end);
	if (end > first + FETCH_MAX)
		end = first + FETCH_MAX;
	for (; s->table && first < end; first++)
		__builtin_prefetch(&s->table[table_first(s, s->extra[first].chain)]);
}

u32 stack_name(struct context *c, u64 chain, u64 pc, u32 first, u32 slots)
{
	const union arena_slot *slot = &c->stacks.arena[first];
	const struct slot_extra *extra = &c->stacks.extra[first];
	u32 node, i = 0;

	fetch_names(&c->stacks, chain, first, first + slots);
	node = known(&c->stacks, chain, pc);
	if (node)
		return node;
	while (i < slots && !(extra[i].chain && (node = known(&c->stacks, extra[i].chain, slot[i].value))))
		i++;
	while (i-- > 0)
		if (extra[i].chain)
			node = name_new(c, extra[i].chain, node, slot[i].value);
	return name_new(c, chain, node, pc);
}

void stack_names_forget(struct stack_cache *s)
{
	if (s->table)
		sys_munmap(s->table, sizeof *s->table * s->table_size);
	s->table = NULL;
	s->table_size = s->table_used = 0;
}
