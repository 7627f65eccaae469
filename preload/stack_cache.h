/*
 * stack_cache.h - what a context keeps to know a stack again without walking it.
 *
 *   entry: (return address, stack pointer) --> every slot of the stack that the walk read, with its value
 *
 * If all of them still hold the same values, a walk would take the same steps, and the stack is the same.
 * That needs more than return addresses: a frame whose CFA hangs on rbp (alloca, frame pointers) is only
 * where it was if the slot that rbp came from is unchanged too.
 *
 *   arena, per entry:  u32 offset[n]  u64 value[n]  u64 needs_bp[n]  u64 chain[n]     (n padded to 4)
 *
 * chain[i] is a hash of the stack from slot i outwards if slot i is a return address, else 0; needs_bp[i] is the rbp
 * that the frames outside of it were found with, 0 if they do not hang on it. A miss uses these to join:
 * as soon as the walk meets a slot of the last stack, the rest need only be compared.
 */
#ifndef STACK_CACHE_H
#define STACK_CACHE_H

#include <mlprof/wire.h>

enum {
	CACHE_SETS = 256,
	CACHE_WAYS = 4,
	CACHE_ARENA = 1 << 20,
	STACK_DEPTH = 1024,         /* frames; what is outside of that is cut and counted */
	STACK_SLOTS = 2 * STACK_DEPTH + 8,
	NODE_TABLE_FIRST = 1024,
	CHECKED_NODES = 1 << 22,    /* for tests only */
};

struct stack_entry {
	u64 pc, sp;                 /* where the hook was called from */
	u64 bp;                     /* rbp there, if uses_bp */
	u32 uses_bp;
	u32 node;
	u32 slots;
	u32 data;                   /* offset in the arena; 0: empty entry */
};

/* hash of a frame and all outside of it -> node number; the pc makes a false match even less likely */
struct node_entry {
	u64 chain;
	u32 pc, node;               /* node 0: empty */
};

struct node_back { u64 pc; u32 parent; };

/* A walk in progress: arrays as in the arena, before it is known how many there will be. chain[i] is 0 for a slot that is
 * no return address, and UNCHAINED for one whose outside is not known yet. */
struct stack_walk {
	u64 slot[STACK_SLOTS], value[STACK_SLOTS], needs_bp[STACK_SLOTS], chain[STACK_SLOTS];
	u32 slots;
};

#define UNCHAINED 1

struct stack_cache {
	u64 epoch;
	u32 arena_used;
	struct stack_entry last;    /* most recent stack, for joins; data 0: none */
	struct node_entry *table;
	u32 table_size, table_used;
	struct node_back *by_number;    /* tests only: to read a stack back */
	struct stack_entry entry[CACHE_SETS][CACHE_WAYS];
	struct stack_walk walk;
	u8 arena[CACHE_ARENA] __attribute__((aligned(64)));
};

static inline u32 stack_padded(u32 slots) { return (slots + 3) & ~3u; }
static inline u32 *stack_offsets(struct stack_cache *s, const struct stack_entry *e) { return (u32 *)(s->arena + e->data); }
static inline u64 *stack_values(struct stack_cache *s, const struct stack_entry *e)
{
	return (u64 *)(s->arena + e->data + 4 * ((stack_padded(e->slots) + 15) & ~15u));
}
static inline u64 *stack_needs_bp(struct stack_cache *s, const struct stack_entry *e)
{
	return stack_values(s, e) + stack_padded(e->slots);
}
static inline u64 *stack_chain(struct stack_cache *s, const struct stack_entry *e)
{
	return stack_needs_bp(s, e) + e->slots;
}

#endif
