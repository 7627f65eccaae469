/*
 * stack.c - a stack that is not in the cache: walked by CFI rules, named frame by frame, remembered.
 *
 *   walk:  innermost frame first; every slot read goes into the walk with its value
 *   join:  when a return address lies where the last stack had it, and rbp agrees, the rest is the last
 *          stack's if its slots are unchanged: compared (0.4 ns a frame) instead of walked (5 to 8)
 *   name:  outermost first, (parent, pc) -> number; a number is sent once, by a node record
 */
#include "stack.h"
#include "buffer.h"
#include "cfi.h"
#include "modules.h"
#include "unwind.h"
#include <string.h>
#include <ucontext.h>

/* ---- names --------------------------------------------------------------------------- */

static u32 node_slot(const struct stack_cache *s, u32 parent, u64 pc)
{
	u64 h = (pc ^ (u64)parent * 0xd6e8feb86659fd93ull) * 0x9e3779b97f4a7c15ull;

	return (u32)(h >> 32) & (s->table_size - 1);
}

static void table_put(struct stack_cache *s, struct node_entry e)
{
	u32 i = node_slot(s, e.parent, e.pc);

	while (s->table[i].node)
		i = (i + 1) & (s->table_size - 1);
	s->table[i] = e;
}

static bool table_grow(struct stack_cache *s)
{
	struct node_entry *old = s->table;
	u32 old_size = s->table_size, size = old_size ? old_size * 4 : NODE_TABLE_FIRST;
	struct node_entry *fresh = sys_memory(sizeof *fresh * size);

	if (!fresh)
		return false;
	s->table = fresh;
	s->table_size = size;
	for (u32 i = 0; i < old_size; i++)
		if (old[i].node)
			table_put(s, old[i]);
	if (old)
		sys_munmap(old, sizeof *old * old_size);
	return true;
}

static u32 node_named(struct context *c, u32 parent, u64 pc)
{
	struct stack_cache *s = &c->stacks;
	u32 i;

	if (unlikely(s->table_used * 2 >= s->table_size) && !table_grow(s))
		return 0;
	for (i = node_slot(s, parent, pc); s->table[i].node; i = (i + 1) & (s->table_size - 1))
		if (s->table[i].pc == pc && s->table[i].parent == parent)
			return s->table[i].node;
	if (unlikely(c->nodes >= NODE_MASK - 1))
		return 0;
	s->table[i] = (struct node_entry){ pc, parent, buffer_node(c, parent, pc) };
	s->table_used++;
	if (unlikely(s->by_number) && c->nodes < CHECKED_NODES)
		s->by_number[c->nodes] = s->table[i];
	return s->table[i].node;
}

/* ---- forgetting ---------------------------------------------------------------------- */

static void clear_entries(struct stack_cache *s)
{
	memset(s->entry, 0, sizeof s->entry);
	s->last.data = 0;
	s->arena_used = 64;             /* offset 0 means none */
}

void stack_forget(struct context *c)
{
	struct stack_cache *s = &c->stacks;

	clear_entries(s);
	if (s->table)
		sys_munmap(s->table, sizeof *s->table * s->table_size);
	s->table = NULL;
	s->table_size = s->table_used = 0;
	s->epoch = guest.epoch;
	EMIT_TEXT(c, c->last, unmapped_code, NULL, 0);
}

/* Not at once: a walk may be under way that is just being sent. The next stack finds the epoch wrong. */
void stack_forget_later(struct context *c)
{
	c->stacks.epoch = guest.epoch - 1;
}

/* ---- the walk ------------------------------------------------------------------------ */

struct walker {
	struct context *c;
	struct stack_walk *w;
	u64 pc, sp, bp;
	u64 low, high;                  /* what may be read: the thread's stack, or what has been probed */
	u64 bp_slot;                    /* where bp was loaded from; 0: it is the caller's own */
	int bp_since;                   /* slot index of the frame that has held this bp; -1: the first */
	int frame;                      /* slot index of the return address that led here; -1: the first */
	bool bp_checked;                /* bp is among the slots already */
	bool uses_bp;                   /* ... or has to be compared itself */
	bool foreign;                   /* not on the thread's own stack: nothing may be cached */
	int joined;                     /* slot of the last stack where it was joined; -1: not */
};

enum outcome { WALK_DONE, WALK_STEP, WALK_HARD, WALK_CUT };

/* The stack of a fiber or a signal stack ends somewhere unknown: ask the kernel, page by page. */
static bool readable(struct walker *k, u64 at)
{
	if (at < k->low || (at & 7))
		return false;
	while (at + 8 > k->high) {
		if (!k->foreign || !sys_readable((const void *)k->high))
			return false;
		k->high += 4096;
	}
	return true;
}

static void push(struct walker *k, u64 slot, u64 value, bool is_return)
{
	struct stack_walk *w = k->w;

	w->slot[w->slots] = slot;
	w->value[w->slots] = value;
	w->is_return[w->slots] = is_return;
	w->needs_bp[w->slots] = 0;
	w->node[w->slots] = 0;
	w->slots++;
}

/* The way outwards from here hangs on bp: so it does from all frames that have held the same bp. */
static void depend_on_bp(struct walker *k)
{
	int from = k->bp_checked ? k->frame : k->bp_since;

	for (int i = from < 0 ? 0 : from; i <= k->frame; i++)
		k->w->needs_bp[i] = k->bp;
	if (k->bp_checked)
		return;
	if (k->bp_slot)
		push(k, k->bp_slot, k->bp, false);
	else
		k->uses_bp = true;
	k->bp_checked = true;
}

static void load_bp(struct walker *k, u64 slot)
{
	k->bp_slot = slot;
	k->bp = *(const u64 *)slot;
	k->bp_checked = false;
}

/* The kernel put the interrupted registers at sp; the frame it interrupted goes on from its very pc. */
static enum outcome step_signal(struct walker *k)
{
	const ucontext_t *u = (const void *)k->sp;
	u64 sp;

	if (!readable(k, k->sp) || !readable(k, (u64)&u->uc_mcontext.gregs[REG_RIP]))
		return WALK_CUT;
	sp = (u64)u->uc_mcontext.gregs[REG_RSP];
	k->pc = (u64)u->uc_mcontext.gregs[REG_RIP] + 1;
	k->bp = (u64)u->uc_mcontext.gregs[REG_RBP];
	k->sp = k->low = sp;
	k->foreign = true;
	k->high = sp >= k->c->stack_low && sp < k->c->stack_high ? k->c->stack_high : sp & ~4095ull;
	k->bp_checked = true;
	k->frame = (int)k->w->slots;
	push(k, 0, k->pc, true);
	return WALK_STEP;
}

static enum outcome step(struct walker *k)
{
	struct rule rule = cfi_rule(k->pc);
	u64 cfa, pc;
	bool saves_bp;

	switch (rule.kind) {
	case RULE_SP:
		cfa = k->sp + (i64)rule.cfa;
		break;
	case RULE_BP:
		depend_on_bp(k);
		cfa = k->bp + (i64)rule.cfa;
		break;
	case RULE_DRAP:
		depend_on_bp(k);
		if (!readable(k, k->bp + (i64)rule.cfa) || !readable(k, k->bp))
			return WALK_CUT;
		cfa = *(const u64 *)(k->bp + (i64)rule.cfa);
		push(k, k->bp + (i64)rule.cfa, cfa, false);
		break;
	case RULE_END:
		return WALK_DONE;
	case RULE_SIGNAL:
		return step_signal(k);
	default:
		return WALK_HARD;
	}
	if (cfa <= k->sp || !readable(k, cfa - 8))
		return WALK_CUT;
	pc = *(const u64 *)(cfa - 8);
	saves_bp = rule.kind == RULE_DRAP || rule.bp;
	if (rule.kind == RULE_DRAP)
		load_bp(k, k->bp);
	else if (rule.bp) {
		if (!readable(k, cfa + (i64)rule.bp))
			return WALK_CUT;
		load_bp(k, cfa + (i64)rule.bp);
	}
	k->frame = (int)k->w->slots;
	if (saves_bp)
		k->bp_since = k->frame;
	push(k, cfa - 8, pc, true);
	k->sp = cfa;
	k->pc = pc;
	return pc ? WALK_STEP : WALK_DONE;
}

/* Is the return address just pushed where the last stack had it, with all outside of it unchanged? */
static bool try_join(struct walker *k, u32 *cursor)
{
	struct stack_cache *s = &k->c->stacks;
	const struct stack_entry *last = &s->last;
	const u32 *offset = stack_offsets(s, last), *node = stack_nodes(s, last);
	const u64 *value = stack_values(s, last), *needs_bp = stack_needs_bp(s, last);
	u64 slot = k->sp - 8;
	u32 i = *cursor;

	while (i < last->slots && (last->sp + offset[i] < slot || !node[i]))
		i++;
	*cursor = i;
	if (i == last->slots || last->sp + offset[i] != slot || value[i] != k->pc || (needs_bp[i] && needs_bp[i] != k->bp))
		return false;
	for (u32 j = i + 1; j < last->slots; j++)
		if (last->sp + offset[j] >= slot && *(const u64 *)(last->sp + offset[j]) != value[j]) {
			*cursor = last->slots;          /* once changed outside, no later slot can join either */
			return false;
		}
	if (needs_bp[i])
		depend_on_bp(k);
	k->joined = (int)i;
	return true;
}

static enum outcome walk(struct walker *k)
{
	bool may_join = k->c->stacks.last.data && !k->foreign;
	u32 cursor = 0;
	enum outcome o;

	while ((o = step(k)) == WALK_STEP) {
		if (may_join && !k->foreign && try_join(k, &cursor))
			return WALK_DONE;
		if (k->w->slots + 4 > STACK_SLOTS)
			return WALK_CUT;
	}
	return o;
}

/* ---- remembering --------------------------------------------------------------------- */

static u32 outer_slots(const struct walker *k)
{
	struct stack_cache *s = &k->c->stacks;
	const u32 *offset = stack_offsets(s, &s->last);
	u32 n = 0;

	for (u32 i = (u32)k->joined + 1; i < s->last.slots; i++)
		n += s->last.sp + offset[i] >= k->sp - 8;
	return n;
}

/* The joined part of the last stack goes behind the walked slots. */
static void append_outer(struct walker *k)
{
	struct stack_cache *s = &k->c->stacks;
	const struct stack_entry *last = &s->last;
	const u32 *offset = stack_offsets(s, last), *node = stack_nodes(s, last);
	const u64 *value = stack_values(s, last), *needs_bp = stack_needs_bp(s, last);
	struct stack_walk *w = k->w;

	for (u32 i = (u32)k->joined + 1; i < last->slots; i++) {
		if (last->sp + offset[i] < k->sp - 8)
			continue;
		w->slot[w->slots] = last->sp + offset[i];
		w->value[w->slots] = value[i];
		w->needs_bp[w->slots] = needs_bp[i];
		w->node[w->slots] = node[i];
		w->slots++;
	}
}

/* Names the walked frames, outermost first; returns the whole stack's number. */
static u32 name_walked(struct walker *k, u32 walked, u64 first_pc)
{
	struct stack_walk *w = k->w;
	u32 parent = 0;

	for (u32 i = walked; i-- > 0;) {
		if (!w->is_return[i] || !w->value[i])
			continue;
		if (k->joined >= 0 && (int)i == k->frame)
			parent = stack_nodes(&k->c->stacks, &k->c->stacks.last)[k->joined];
		else
			parent = node_named(k->c, parent, w->value[i]);
		w->node[i] = parent;
	}
	return node_named(k->c, parent, first_pc);
}

static bool can_be_kept(const struct walker *k, struct caller at)
{
	if (k->foreign || !k->w->slots)
		return false;
	for (u32 i = 0; i < k->w->slots; i++)
		if (k->w->slot[i] < at.sp || k->w->slot[i] >= k->c->stack_high)
			return false;
	return true;
}

static void keep(struct walker *k, struct caller at, u32 node, struct stack_entry *set)
{
	struct stack_cache *s = &k->c->stacks;
	struct stack_walk *w = k->w;
	u32 n = w->slots, padded = stack_padded(n);
	u32 bytes = 4 * ((padded + 15) & ~15u) + 8 * padded + 8 * n + 4 * n;
	struct stack_entry e = { at.pc, at.sp, at.bp, k->uses_bp, node, n, 0 };
	u64 *value;
	u32 *offset;

	if (s->arena_used + bytes > CACHE_ARENA)
		clear_entries(s);
	e.data = s->arena_used;
	s->arena_used += (bytes + 63) & ~63u;
	offset = stack_offsets(s, &e);
	value = stack_values(s, &e);
	for (u32 i = 0; i < padded; i++) {
		u32 from = i < n ? i : n - 1;

		offset[i] = (u32)(w->slot[from] - at.sp);
		value[i] = w->value[from];
	}
	memcpy(stack_needs_bp(s, &e), w->needs_bp, 8 * n);
	memcpy(stack_nodes(s, &e), w->node, 4 * n);
	memmove(set + 1, set, sizeof *set * (CACHE_WAYS - 1));
	set[0] = s->last = e;
}

/* ---- when rules do not do ------------------------------------------------------------- */

static u32 name_all(struct context *c, const u64 *pc, u32 n)
{
	u32 node = 0;

	while (n--)
		node = node_named(c, node, pc[n]);
	return node;
}

/* What was walked before the rules ended, if libunwind cannot do better. */
static u32 hard_stack(struct walker *k, struct caller at)
{
	u64 *pc = k->w->needs_bp;       /* not wanted any more, and large enough */
	struct context *c = k->c;
	u32 n, frames = 1;

	c->slot->head.hard_stacks++;
	for (u32 i = 0; i < k->w->slots; i++)
		frames += k->w->is_return[i];
	n = k->foreign ? 0 : unwind_stack(at, pc, STACK_DEPTH);
	if (n > frames)
		return name_all(c, pc, n);
	c->slot->head.lost_stacks++;
	return name_walked(k, k->w->slots, at.pc);
}

/* ---- in --------------------------------------------------------------------------------*/

u32 stack_miss(struct context *c, struct caller at, struct stack_entry *set)
{
	struct walker k = {
		.c = c, .w = &c->stacks.walk, .pc = at.pc, .sp = at.sp, .bp = at.bp,
		.low = at.sp, .high = c->stack_high, .bp_since = -1, .frame = -1, .joined = -1,
	};
	enum outcome o;
	u32 node, walked;

	c->slot->head.stack_misses++;
	k.w->slots = 0;
	if (at.sp < c->stack_low || at.sp >= c->stack_high) {
		k.foreign = true;
		k.high = at.sp & ~4095ull;
	}
	o = walk(&k);
	modules_announce(c, c->last);
	if (o == WALK_HARD)
		return hard_stack(&k, at);
	if (o == WALK_CUT)
		c->slot->head.lost_stacks++;
	walked = k.w->slots;
	if (k.joined >= 0 && walked + outer_slots(&k) <= STACK_SLOTS)
		append_outer(&k);
	node = name_walked(&k, walked, at.pc);
	if (can_be_kept(&k, at))
		keep(&k, at, node, set);
	return node;
}

/* ---- the other ways ------------------------------------------------------------------- */

static u32 caller_only(struct context *c, struct caller at)
{
	if (unlikely(c->stacks.epoch != guest.epoch))
		stack_forget(c);
	cfi_rule(at.pc);                /* for the module it is in */
	modules_announce(c, c->last);
	return node_named(c, 0, at.pc);
}

/* For tests: every stack, cached or walked, is compared with what libunwind finds now. */
static u32 checked(struct context *c, struct caller at)
{
	u64 *truth = c->stacks.walk.needs_bp;
	u32 node = stack_lookup(c, at), at_node = node, n, i;

	n = unwind_stack(at, truth, STACK_DEPTH);
	for (i = 0; i < n && at_node; i++) {
		struct node_entry e = c->stacks.by_number[at_node];

		if (e.pc != truth[i])
			break;
		at_node = e.parent;
	}
	guest_checks.stacks++;
	if (n && (i < n || at_node))
		guest_checks.wrong++;
	return node;
}

u32 stack_other(struct context *c, struct caller at)
{
	switch (guest.stacks) {
	case STACKS_CALLER: return caller_only(c, at);
	case STACKS_CHECKED: return checked(c, at);
	default: return 0;
	}
}

void stack_start(struct context *c)
{
	clear_entries(&c->stacks);
	c->stacks.epoch = guest.epoch;
	if (guest.stacks == STACKS_CHECKED && !c->stacks.by_number)
		c->stacks.by_number = sys_memory(sizeof(struct node_entry) * CHECKED_NODES);
}
