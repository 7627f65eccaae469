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

/* Hash of a frame and all outside of it. Computed without looking anything up, so that a stack that is known takes one
 * look into the table, however deep it is. */
static inline u64 chain_of(u64 outside, u64 pc)
{
	u64 h = (outside ^ pc) * 0x9e3779b97f4a7c15ull;

	h ^= h >> 32;
	return h > UNCHAINED ? h : h + 2;
}

static struct node_entry *table_slot(const struct stack_cache *s, u64 chain, u64 pc)
{
	u32 i = (u32)(chain >> 8) & (s->table_size - 1);

	while (s->table[i].node && (s->table[i].chain != chain || s->table[i].pc != (u32)pc))
		i = (i + 1) & (s->table_size - 1);
	return &s->table[i];
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
			*table_slot(s, old[i].chain, old[i].pc) = old[i];
	if (old)
		sys_munmap(old, sizeof *old * old_size);
	return true;
}

static u32 node_known(const struct stack_cache *s, u64 chain, u64 pc)
{
	return likely(s->table) ? table_slot(s, chain, pc)->node : 0;
}

static u32 name_new(struct context *c, u64 chain, u32 parent, u64 pc)
{
	struct stack_cache *s = &c->stacks;
	u32 node;

	if (unlikely(s->table_used * 2 >= s->table_size) && !table_grow(s))
		return 0;
	if (unlikely(c->nodes >= NODE_MASK - 1))
		return 0;
	node = buffer_node(c, parent, pc);
	*table_slot(s, chain, pc) = (struct node_entry){ chain, (u32)pc, node };
	s->table_used++;
	if (unlikely(s->by_number) && node < CHECKED_NODES)
		s->by_number[node] = (struct node_back){ pc, parent };
	return node;
}

/* The innermost frame of the walk; all frames outside of it that have no number yet are named first, outermost first. */
static u32 name_stack(struct context *c, u64 chain, u64 pc)
{
	const struct stack_walk *w = &c->stacks.walk;
	u32 node = node_known(&c->stacks, chain, pc), i = 0;

	if (node)
		return node;
	while (i < w->slots && !(w->chain[i] && (node = node_known(&c->stacks, w->chain[i], w->value[i]))))
		i++;
	while (i-- > 0)
		if (w->chain[i])
			node = name_new(c, w->chain[i], node, w->value[i]);
	return name_new(c, chain, node, pc);
}

/* ---- forgetting ---------------------------------------------------------------------- */

static void clear_entries(struct stack_cache *s)
{
	memset(s->entry, 0, sizeof s->entry);
	s->last.data = 0;
	s->arena_used = 64;             /* offset 0 means none */
}

void stack_forget(struct context *c, u64 t)
{
	struct stack_cache *s = &c->stacks;

	clear_entries(s);
	if (s->table)
		sys_munmap(s->table, sizeof *s->table * s->table_size);
	s->table = NULL;
	s->table_size = s->table_used = 0;
	s->epoch = guest.epoch;
	EMIT_TEXT(c, t, unmapped_code, NULL, 0);
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
	bool guessed;                   /* went through code without CFI: not cached either */
	int joined;                     /* slot of the last stack where it was joined; -1: not */
};

enum outcome { WALK_DONE, WALK_STEP, WALK_CUT };

/* The stack of a fiber or a signal stack ends somewhere unknown: ask the kernel, page by page. */
static __attribute__((noinline)) bool probe(struct walker *k, u64 at)
{
	if (at < k->low || (at & 7) || !k->foreign)
		return false;
	while (at + 8 > k->high) {
		if (!sys_readable((const void *)k->high))
			return false;
		k->high += 4096;
	}
	return true;
}

/* high is a multiple of 8, so a slot that begins below it ends below it. */
static inline bool readable(struct walker *k, u64 at)
{
	return likely(at - k->low < k->high - k->low && !(at & 7)) || probe(k, at);
}

static inline void push(struct walker *k, u64 slot, u64 value, u64 chain)
{
	struct stack_walk *w = k->w;
	u32 i = w->slots++;

	w->slot[i] = slot;
	w->value[i] = value;
	w->needs_bp[i] = 0;
	w->chain[i] = chain;
}

/* The way outwards from here hangs on bp: so it does from all frames that have held the same bp. */
static __attribute__((noinline)) void depend_on_bp(struct walker *k)
{
	int from = k->bp_checked ? k->frame : k->bp_since;

	for (int i = from < 0 ? 0 : from; i <= k->frame; i++)
		k->w->needs_bp[i] = k->bp;
	if (k->bp_checked)
		return;
	if (k->bp_slot)
		push(k, k->bp_slot, k->bp, 0);
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
	push(k, 0, k->pc, UNCHAINED);
	return WALK_STEP;
}

/*
 * JIT code mostly, or hand-written assembler. If it keeps a frame pointer, the chain goes on where that leads; a guess
 * that cannot be right ends the walk. ld.so's entry, which calls constructors, has no CFI and is the end all the same.
 */
static __attribute__((noinline)) enum outcome step_without_cfi(struct walker *k)
{
	struct dl_find_object object;
	u64 pc;

	if (k->sp + 64 >= k->c->stack_begin && !k->foreign)
		return WALK_DONE;
	if (k->bp < k->sp || !readable(k, k->bp) || !readable(k, k->bp + 8))
		return WALK_CUT;
	pc = *(const u64 *)(k->bp + 8);
	if (_dl_find_object((void *)(pc - 1), &object) != 0 && *(const u64 *)k->bp <= k->bp)
		return WALK_CUT;        /* neither known code nor the next link of a chain */
	k->guessed = true;
	k->sp = k->bp + 16;
	k->pc = pc;
	k->frame = (int)k->w->slots;
	push(k, k->bp + 8, pc, UNCHAINED);
	load_bp(k, k->bp);
	k->bp_since = k->frame;
	return WALK_STEP;
}

static inline enum outcome step(struct walker *k)
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
		push(k, k->bp + (i64)rule.cfa, cfa, 0);
		break;
	case RULE_END:
		return WALK_DONE;
	case RULE_SIGNAL:
		return step_signal(k);
	default:
		return step_without_cfi(k);
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
	push(k, cfa - 8, pc, pc ? UNCHAINED : 0);
	k->sp = cfa;
	k->pc = pc;
	return pc ? WALK_STEP : WALK_DONE;
}

/* The last stack, laid open: `next` is where its next return address outwards lies. */
struct last_stack {
	const struct stack_entry *e;
	const u32 *offset;
	const u64 *value, *needs_bp, *chain;
	u64 next;
	u32 i, tries;
};

enum { JOIN_TRIES = 12 };       /* a stack that is shifted as a whole never joins: do not look for ever */

static void seek(struct last_stack *l, u64 slot)
{
	while (l->i < l->e->slots && (l->e->sp + l->offset[l->i] < slot || !l->chain[l->i]))
		l->i++;
	l->next = l->i < l->e->slots ? l->e->sp + l->offset[l->i] : UINT64_MAX;
}

static void open_last(struct last_stack *l, struct stack_cache *s, u64 from)
{
	*l = (struct last_stack){ .e = &s->last, .next = UINT64_MAX };
	if (!s->last.data)
		return;
	l->offset = stack_offsets(s, l->e);
	l->value = stack_values(s, l->e);
	l->needs_bp = stack_needs_bp(s, l->e);
	l->chain = stack_chain(s, l->e);
	seek(l, from);
}

static bool outside_unchanged(const struct last_stack *l, u64 slot)
{
	for (u32 i = l->i + 1; i < l->e->slots; i++)
		if (l->e->sp + l->offset[i] >= slot && *(const u64 *)(l->e->sp + l->offset[i]) != l->value[i])
			return false;
	return true;
}

/* The walk has come to `slot`, at or beyond the last stack's next return address: is all outside of it the same? */
static __attribute__((noinline)) bool try_join(struct walker *k, struct last_stack *l, u64 slot)
{
	if (++l->tries == JOIN_TRIES) {
		l->next = UINT64_MAX;
		return false;
	}
	seek(l, slot);
	if (l->next != slot || l->value[l->i] != k->pc || (l->needs_bp[l->i] && l->needs_bp[l->i] != k->bp))
		return false;
	if (!outside_unchanged(l, slot)) {
		l->next = UINT64_MAX;           /* once changed outside, no later slot can join either */
		return false;
	}
	if (l->needs_bp[l->i])
		depend_on_bp(k);
	k->joined = (int)l->i;
	return true;
}

static enum outcome walk(struct walker *k)
{
	struct last_stack last;
	enum outcome o;

	open_last(&last, &k->c->stacks, k->sp);
	while ((o = step(k)) == WALK_STEP) {
		if (unlikely(k->sp - 8 >= last.next) && !k->foreign && try_join(k, &last, k->sp - 8))
			return WALK_DONE;
		if (unlikely(k->w->slots + 4 > STACK_SLOTS))
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
	const u32 *offset = stack_offsets(s, last);
	const u64 *value = stack_values(s, last), *needs_bp = stack_needs_bp(s, last), *chain = stack_chain(s, last);
	struct stack_walk *w = k->w;

	for (u32 i = (u32)k->joined + 1; i < last->slots; i++) {
		if (last->sp + offset[i] < k->sp - 8)
			continue;
		w->slot[w->slots] = last->sp + offset[i];
		w->value[w->slots] = value[i];
		w->needs_bp[w->slots] = needs_bp[i];
		w->chain[w->slots] = chain[i];
		w->slots++;
	}
}

/* Chains the walked frames to what is outside of them, outermost first. */
static u64 chain_walked(struct walker *k, u32 walked)
{
	struct stack_walk *w = k->w;
	u64 chain = 0;

	if (k->joined >= 0)
		w->chain[k->frame] = chain = stack_chain(&k->c->stacks, &k->c->stacks.last)[k->joined];
	for (u32 i = walked; i-- > 0;)
		if (w->chain[i] == UNCHAINED)
			w->chain[i] = chain = chain_of(chain, w->value[i]);
	return chain;
}

static u32 name_walk(struct walker *k, struct caller at)
{
	u32 walked = k->w->slots;
	u64 chain;

	if (k->joined >= 0 && walked + outer_slots(k) > STACK_SLOTS - 4)
		k->joined = -1;                 /* too deep to be kept whole */
	else if (k->joined >= 0)
		append_outer(k);
	chain = chain_of(chain_walked(k, walked), at.pc);
	return name_stack(k->c, chain, at.pc);
}

static void keep(struct walker *k, struct caller at, u32 node, struct stack_entry *set)
{
	struct stack_cache *s = &k->c->stacks;
	struct stack_walk *w = k->w;
	u32 n = w->slots, padded = stack_padded(n);
	u32 bytes = 4 * ((padded + 15) & ~15u) + 8 * padded + 8 * n + 8 * n;
	struct stack_entry e = { at.pc, at.sp, at.bp, k->uses_bp, node, n, 0 };
	u64 *value;
	u32 *offset;

	if (s->arena_used + bytes > CACHE_ARENA)
		clear_entries(s);
	e.data = s->arena_used;
	s->arena_used += (bytes + 63) & ~63u;
	offset = stack_offsets(s, &e);
	value = stack_values(s, &e);
	for (u32 i = n; i < padded; i++) {      /* compared four at a time: the last slot is repeated */
		w->slot[i] = w->slot[n - 1];
		w->value[i] = w->value[n - 1];
	}
	for (u32 i = 0; i < padded; i += 4) {
		offset[i] = (u32)(w->slot[i] - at.sp);
		offset[i + 1] = (u32)(w->slot[i + 1] - at.sp);
		offset[i + 2] = (u32)(w->slot[i + 2] - at.sp);
		offset[i + 3] = (u32)(w->slot[i + 3] - at.sp);
	}
	memcpy(value, w->value, 8 * padded);
	memcpy(stack_needs_bp(s, &e), w->needs_bp, 8 * n);
	memcpy(stack_chain(s, &e), w->chain, 8 * n);
	memmove(set + 1, set, sizeof *set * (CACHE_WAYS - 1));
	set[0] = s->last = e;
}

/* ---- in --------------------------------------------------------------------------------*/

u32 stack_miss(struct context *c, struct caller at, u64 t, struct stack_entry *set)
{
	struct walker k = {
		.c = c, .w = &c->stacks.walk, .pc = at.pc, .sp = at.sp, .bp = at.bp,
		.low = at.sp, .high = c->stack_high, .bp_since = -1, .frame = -1, .joined = -1,
	};
	enum outcome o;
	u32 node;

	c->slot->head.stack_misses++;
	k.w->slots = 0;
	if (at.sp < c->stack_low || at.sp >= c->stack_high) {
		k.foreign = true;
		k.high = at.sp & ~4095ull;
	}
	o = walk(&k);
	modules_announce(c, t);
	if (o == WALK_CUT)
		c->slot->head.lost_stacks++;
	if (k.guessed)
		c->slot->head.hard_stacks++;
	node = name_walk(&k, at);
	if (!k.foreign && !k.guessed && k.w->slots)
		keep(&k, at, node, set);
	return node;
}

/* ---- the other ways ------------------------------------------------------------------- */

static u32 caller_only(struct context *c, struct caller at, u64 t)
{
	if (unlikely(c->stacks.epoch != guest.epoch))
		stack_forget(c, t);
	cfi_rule(at.pc);                /* for the module it is in */
	modules_announce(c, t);
	c->stacks.walk.slots = 0;
	return name_stack(c, chain_of(0, at.pc), at.pc);
}

/* For tests: every stack, cached or walked, is compared with what libunwind finds now. */
static u32 checked(struct context *c, struct caller at, u64 t)
{
	u64 *truth = c->stacks.walk.needs_bp;
	u32 node = stack_lookup(c, at, t), at_node = node, n, i;

	n = unwind_stack(at, truth, STACK_DEPTH);
	for (i = 0; i < n && at_node; i++) {
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
	clear_entries(&c->stacks);
	c->stacks.epoch = guest.epoch;
	if (guest.stacks == STACKS_CHECKED && !c->stacks.by_number)
		c->stacks.by_number = sys_memory(sizeof(struct node_back) * CHECKED_NODES);
}
