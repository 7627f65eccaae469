/*
 * stack_cache.h - what a context keeps to know a stack again without walking it.
 *
 *   entry: (return address, stack pointer) --> path: every slot of the stack that the walk read, with its value
 *
 * If all of them still hold the same values, a walk would take the same steps, and the stack is the same.
 * That needs more than return addresses: a frame whose CFA hangs on rbp (alloca, frame pointers) is only
 * where it was if the slot that rbp came from is unchanged too.
 *
 * Programs that run in rounds ask for the same stacks in the same order: an entry knows which one came after it, and that one is
 * fetched and tried before any is searched for.
 *
 * Stacks share what is outside of the place where they part, as branches of a tree: a path is a run of slots in the
 * arena, and behind it the path that goes on from there.
 *
 *   arena:  [ slot slot slot | last last last | link ]   the last slot is repeated: four are compared at a time
 *                 ^                             |
 *                 +--- of an older stack -------+
 */
#ifndef STACK_CACHE_H
#define STACK_CACHE_H

#include <mlprof/wire.h>

enum {
	RECENT_LOG = 10,
	CACHE_SETS_LOG = 10,
	CACHE_WAYS = 4,
	CACHE_GROWTH_LOG = 2,       /* sets and arena can grow to so many times their first size */
	CACHE_ENTRIES = CACHE_WAYS << (CACHE_SETS_LOG + CACHE_GROWTH_LOG),
	NO_ENTRY = 0,
	DEEP_FRAMES = 4,
	ARENA_SLOTS = 32768,        /* of an arena that has not grown; then all is forgotten and the cache starts anew */
	ARENA_SLOTS_MAX = ARENA_SLOTS << CACHE_GROWTH_LOG,
	PATH_PAD = 3,
	STACK_DEPTH = 1024,         /* frames; what is outside of that is cut and counted */
	STACK_SLOTS = 2 * STACK_DEPTH + 8,
	CHECKED_NODES = 1 << 22,    /* for tests only */
};

/* `slots` slots from arena[first] outwards, then the path of their link; no slots: the end */
struct path { u32 first, slots; };

union arena_slot {
	struct { u64 at, value; };
	struct { struct path outside; u32 slots, links; };      /* the link; slots and links: from here to the end */
};

/* What a miss needs besides, to join a known stack: see stack_walk.c. */
struct slot_extra {
	u64 chain;                  /* hash of the stack from this return address outwards; 0: no return address; or UNCHAINED */
	u64 needs_bp;               /* the rbp that the frames outside were found with; 0: they do not hang on it */
};

struct stack_entry {
	u64 pc, sp;                 /* where the hook was called from */
	u64 bp;                     /* rbp there, if uses_bp */
	struct path path;           /* slots 0: empty entry */
	u16 uses_bp;
	u16 next;                   /* the entry of the stack that came after this one the last time */
	u32 node;
};

/* hash of a frame and all outside of it -> node number; the pc makes a false match even less likely. A line of the CPU's cache has four. */
struct node_entry {
	u64 chain;
	u32 pc, node;               /* node 0: empty */
};

struct node_back { u64 pc; u32 parent; };

struct stack_cache {
	u64 epoch;
	u32 arena_used;
	u16 now, expected;          /* entries of the most recent stack, and of the one that came after it the last time */
	struct path last;           /* most recent stack, for joins */
	struct node_entry *table;
	u32 table_size, table_used;
	u32 names_before;           /* numbers given out before they began afresh */
	bool last_was_new;          /* the last stack that was looked for there; the next one may be, too */
	struct node_back *by_number;    /* tests only: to read a stack back */
	u32 victim;                 /* which way of a set is given up next */
	u32 growth;                 /* log2 */
	u32 growth_rest;            /* clearings before it may grow again */
	u64 smaller_rate;           /* of misses, when it was half as large */
	struct { u64 misses, chunks, nodes; } cleared;  /* counts when it was last cleared */
	u16 recent[1 << RECENT_LOG];    /* by caller: its last stack, in entry[] */
	u16 tag[CACHE_ENTRIES / CACHE_WAYS][CACHE_WAYS];    /* by caller and a few frames outside of it; 0: no entry */
	struct stack_entry entry[1 + CACHE_ENTRIES];        /* NO_ENTRY is never filled, but has a next */
	union arena_slot arena[ARENA_SLOTS_MAX + STACK_SLOTS] __attribute__((aligned(64)));
	struct slot_extra extra[ARENA_SLOTS_MAX + STACK_SLOTS];
};

static inline const union arena_slot *path_link(const struct stack_cache *s, struct path p)
{
	return &s->arena[p.first + p.slots + PATH_PAD];
}

#endif
