/*
 * stack.c - a stack that is not in the cache: walked, named, remembered.
 */
#include "stack.h"
#include "buffer.h"
#include "cfi.h"
#include "modules.h"
#include "stack_hash.h"
#include "stack_name.h"
#include "stack_walk.h"
#include "unwind.h"
#include <string.h>

enum { GROWTH_SCALE = 1024, GROWTH_REST = 8 };

/* ---- forgetting ---------------------------------------------------------------------- */

static void note_counts(struct context *c)
{
	c->stacks.cleared.misses = c->slot->head.stack_misses;
	c->stacks.cleared.chunks = c->slot->head.seq;
	c->stacks.cleared.nodes = c->nodes;
}

static void clear_entries(struct stack_cache *s)
{
	memset(s->tag, 0, sizeof *s->tag << CACHE_SETS_LOG << s->growth);
	memset(s->recent, 0, sizeof s->recent);         /* NO_ENTRY */
	s->last.slots = 0;
	s->arena_used = 0;
	s->now = s->expected = s->entry[NO_ENTRY].next = NO_ENTRY;
}

/*
 * The arena is full. Is it too small, or would no size do? New stacks, or ones whose names are forgotten, bring new nodes, several
 * each: if there were fewer of those than misses, most stacks had been known. A larger arena leaves the CPU's cache, so it must
 * pay: with fewer misses for what is recorded.
 */
static void clear_or_grow(struct context *c)
{
	struct stack_cache *s = &c->stacks;
	const struct slot_head *h = &c->slot->head;
	u64 misses = h->stack_misses - s->cleared.misses, rate = misses * GROWTH_SCALE / (h->seq - s->cleared.chunks + 1);
	bool known = c->nodes - s->cleared.nodes < misses;

	clear_entries(s);
	s->growth_rest -= s->growth_rest > 0;
	if (s->growth && rate > s->smaller_rate / 16 * 15) {
		s->growth--;
		s->growth_rest = GROWTH_REST;
	} else if (known && s->growth < CACHE_GROWTH_LOG && !s->growth_rest) {
		s->growth++;
		s->smaller_rate = rate;
	}
	note_counts(c);
}

void stack_forget(struct context *c, u64 t)
{
	struct stack_cache *s = &c->stacks;

	clear_entries(s);
	stack_names_forget(s);
	s->epoch = guest.epoch;
	EMIT_TEXT(c, t, unmapped_code, NULL, 0);
	if (c->nodes > NODE_RESTART) {
		c->nodes = 0;
		buffer_next_chunk(c);
	}
	s->names_before = c->nodes;
}

/* Not at once: a walk may be under way that is just being sent or named. The next stack finds the epoch wrong. */
void stack_forget_later(struct context *c)
{
	c->stacks.epoch = guest.epoch - 1;
}

/* ---- a miss --------------------------------------------------------------------------- */

static void keep(struct stack_cache *s, const struct walk *w, struct caller at, u32 node, struct stack_entry *e)
{
	struct path p = { w->first, w->slots };
	union arena_slot *end = &s->arena[p.first + p.slots];
	bool joined = w->outside.slots;
	const union arena_slot *next = joined ? path_link(s, w->outside) : NULL;

	for (u32 i = 0; i < PATH_PAD; i++)
		end[i] = end[-1];
	end[PATH_PAD].outside = w->outside;
	end[PATH_PAD].slots = joined ? w->outside.slots + next->slots : 0;
	end[PATH_PAD].links = joined ? next->links + 1 : 0;
	s->arena_used += p.slots + PATH_PAD + 1;
	*e = (struct stack_entry){ .pc = at.pc, .sp = at.sp, .bp = at.bp, .path = p, .uses_bp = w->uses_bp, .node = node };
	s->last = p;
}

static u32 name(struct context *c, const struct walk *w, struct caller at)
{
	return stack_name(c, w->chain, at.pc, w->first, w->slots, w->outside.slots);
}

static u32 miss(struct context *c, struct caller at, u64 t, struct stack_entry *victim)
{
	struct stack_cache *s = &c->stacks;
	struct walk w = stack_walk(c, at);
	u32 node;

	modules_announce(c, t);
	node = name(c, &w, at);
	if (unlikely(!node && w.outside.slots)) {       /* it joined a stack whose names have been forgotten: to the end, then */
		s->last.slots = 0;
		w = stack_walk(c, at);
		node = name(c, &w, at);
	}
	c->slot->head.stack_misses++;
	c->slot->head.lost_stacks += w.cut || !node;
	c->slot->head.hard_stacks += w.guessed;
	if (!w.foreign && !w.guessed && w.slots)
		keep(s, &w, at, node, victim);
	return node;
}

/* A few frames of the stack, found as the walk would find them. A wrong step only makes a bad hash. */
static u64 deep_hash(const struct context *c, struct caller at, u64 h)
{
	for (u32 i = 0; i < DEEP_FRAMES; i++) {
		struct rule r = cfi_peek(at.pc);
		u64 cfa = (r.kind == RULE_SP ? at.sp : at.bp) + (u64)r.cfa;

		if ((r.kind != RULE_SP && r.kind != RULE_BP) || cfa - 8 < at.sp || cfa > c->stack_high || (cfa & 7))
			break;
		if (r.bp && cfa + (u64)r.bp - at.sp < c->stack_high - at.sp)
			at.bp = *(const u64 *)(cfa + (u64)r.bp);
		at.sp = cfa;
		at.pc = *(const u64 *)(cfa - 8);
		h = (h ^ at.pc) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 32;
	}
	return h * 0xd6e8feb86659fd93ull;
}

/* A way of the set to be filled. What it held may be forgotten, and the stack may not be kept. */
static u32 give_up_entry(struct stack_cache *s, u32 set, u16 tag)
{
	u32 way = s->victim++ % CACHE_WAYS, number = 1 + set * CACHE_WAYS + way;

	s->tag[set][way] = tag;
	s->entry[number] = (struct stack_entry){ 0 };
	return number;
}

static u32 follows(struct stack_cache *s, u32 number)
{
	s->entry[s->now].next = (u16)number;
	return stack_is_now(s, number);
}

static u32 not_recent(struct context *c, struct caller at, u64 t, u64 h, u16 *recent)
{
	struct stack_cache *s = &c->stacks;
	const u16 *tags;
	u32 set, way, node;
	u16 tag;

	h = deep_hash(c, at, h);
	if (unlikely(s->arena_used >= (u32)ARENA_SLOTS << s->growth))
		clear_or_grow(c);
	set = h >> (64 - CACHE_SETS_LOG - s->growth);
	tags = s->tag[set];
	tag = h | 1;
	for (way = 0; way < CACHE_WAYS; way++)
		if (tags[way] == tag && stack_is(s, &s->entry[1 + set * CACHE_WAYS + way], at)) {
			*recent = (u16)(1 + set * CACHE_WAYS + way);
			return follows(s, *recent);
		}
	*recent = (u16)give_up_entry(s, set, tag);
	node = miss(c, at, t, &s->entry[*recent]);
	s->entry[s->now].next = *recent;
	s->now = *recent;
	s->expected = NO_ENTRY;
	return node;
}

static u64 stack_hash(struct caller at)
{
	return (at.pc ^ at.sp * 0x9e3779b97f4a7c15ull) * 0xd6e8feb86659fd93ull;
}

u32 stack_not_expected(struct context *c, struct caller at, u64 t)
{
	struct stack_cache *s = &c->stacks;
	u64 h = stack_hash(at);
	u16 *recent = &s->recent[h >> (64 - RECENT_LOG)];

	if (unlikely(s->epoch != guest.epoch))
		stack_forget(c, t);
	return stack_is(s, &s->entry[*recent], at) ? follows(s, *recent) : not_recent(c, at, t, h, recent);
}

/* ---- the other ways ------------------------------------------------------------------- */

static u32 caller_only(struct context *c, struct caller at, u64 t)
{
	if (unlikely(c->stacks.epoch != guest.epoch))
		stack_forget(c, t);
	cfi_rule(at.pc);                /* for the module it is in */
	modules_announce(c, t);
	return stack_name(c, chain_of(0, at.pc), at.pc, 0, 0, false);
}

/* For tests: every stack, cached or walked, is compared with what libunwind finds now. */
static u32 checked(struct context *c, struct caller at, u64 t)
{
	u32 node = stack_lookup(c, at, t), at_node = node, n, i;
	u64 *truth = (u64 *)&c->stacks.arena[c->stacks.arena_used];     /* there is room for a walk */

	n = unwind_stack(at, truth, STACK_DEPTH);
	for (i = 0; i < n && at_node; i++) {
		if (at_node >= CHECKED_NODES)
			return node;
		struct node_back e = c->stacks.by_number[at_node];

		if (e.pc != truth[i])
			break;
		at_node = e.parent;
	}
	guest_checks.stacks++;
	if (n && (i < n || at_node))
		guest_checks.wrong++;
	return node;
}

u32 stack_other(struct context *c, struct caller at, u64 t)
{
	switch (guest.stacks) {
	case STACKS_CALLER: return caller_only(c, at, t);
	case STACKS_CHECKED: return checked(c, at, t);
	default: return 0;
	}
}

void stack_start(struct context *c)
{
	struct stack_cache *s = &c->stacks;

	if (s->arena_used)              /* else it is new, or has just been cleared */
		clear_entries(s);
	note_counts(c);
	if (!c->nodes)                  /* else names may have to be forgotten that a thread before this one has given */
		s->epoch = guest.epoch;
	if (guest.stacks == STACKS_CHECKED && !s->by_number)
		s->by_number = sys_memory(sizeof(struct node_back) * CHECKED_NODES);
}
