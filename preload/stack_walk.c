/*
 * stack_walk.c - a walk by CFI rules, innermost frame first.
 *
 *   step:  every slot read goes into the arena with its value, behind all that is kept
 *   join:  when a return address lies where the last stack had it, and rbp agrees, the rest is the last
 *          stack's if its slots are unchanged: compared (0.3 ns a frame) instead of walked (5 to 8)
 */
#include "stack_walk.h"
#include "cfi.h"
#include "stack_hash.h"
#include "stack_name.h"
#include <dlfcn.h>
#include <ucontext.h>

struct walker {
	struct walk done;
	struct context *c;
	union arena_slot *slot;         /* the arena from done.first on */
	struct slot_extra *extra;
	struct stack_hash hash;
	u64 pc, sp, bp;
	u64 low, high;                  /* what may be read: the thread's stack, or what has been probed */
	u64 bp_slot;                    /* where bp was loaded from; 0: it is the caller's own */
	int bp_since;                   /* slot index of the frame that has held this bp; -1: the first */
	int frame;                      /* slot index of the return address that led here; -1: the first */
	bool bp_checked;                /* bp is among the slots already, or has to be compared itself */
};

enum outcome { WALK_DONE, WALK_STEP, WALK_CUT };

/* The stack of a fiber or a signal stack ends somewhere unknown: ask the kernel, page by page. */
static __attribute__((noinline)) bool probe(struct walker *k, u64 at)
{
	if (at < k->low || (at & 7) || !k->done.foreign)
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
	u32 i = k->done.slots++;

	k->slot[i].at = slot;
	k->slot[i].value = value;
	k->extra[i] = (struct slot_extra){ .chain = chain };
}

static inline void push_frame(struct walker *k, u64 slot, u64 pc)
{
	k->frame = (int)k->done.slots;
	push(k, slot, pc, UNCHAINED);
	hash_add(&k->hash, pc);
}

/* The way outwards from here hangs on bp: so it does from all frames that have held the same bp. */
static void depend_on_bp(struct walker *k)
{
	for (int i = k->bp_since < 0 ? 0 : k->bp_since; i <= k->frame; i++)
		k->extra[i].needs_bp = k->bp;
	if (k->bp_checked)
		return;
	if (k->bp_slot)
		push(k, k->bp_slot, k->bp, 0);
	else
		k->done.uses_bp = true;
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
	k->done.foreign = true;
	k->high = sp >= k->c->stack_low && sp < k->c->stack_high ? k->c->stack_high : sp & ~4095ull;
	k->bp_checked = true;
	push_frame(k, 0, k->pc);
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

	if (k->sp + 64 >= k->c->stack_begin && !k->done.foreign)
		return WALK_DONE;
	if (k->bp < k->sp || !readable(k, k->bp) || !readable(k, k->bp + 8))
		return WALK_CUT;
	pc = *(const u64 *)(k->bp + 8);
	if (_dl_find_object((void *)(pc - 1), &object) != 0 && *(const u64 *)k->bp <= k->bp)
		return WALK_CUT;        /* neither known code nor the next link of a chain */
	k->done.guessed = true;
	k->sp = k->bp + 16;
	k->pc = pc;
	push_frame(k, k->bp + 8, pc);
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
	if (saves_bp)
		k->bp_since = (int)k->done.slots;
	if (!pc) {
		push(k, cfa - 8, 0, 0);
		return WALK_DONE;
	}
	push_frame(k, cfa - 8, pc);
	k->sp = cfa;
	k->pc = pc;
	return WALK_STEP;
}

/* The frame whose return address was pushed at slot i saved rbp, by the rule of the frame inside of it. */
static void take_saved_bp(struct walker *k, u32 i, u64 inside)
{
	u64 slot = k->slot[i].at + 8 + (u64)(i64)cfi_rule(inside).bp;     /* the table may have lost it meanwhile */

	k->bp_since = (int)i;
	if (readable(k, slot))
		load_bp(k, slot);
	else
		k->bp = 0;              /* leads nowhere */
}

/*
 * The commonest frames, one after another in registers: CFA = rsp + n, on the thread's own stack, inside of `until`. Any
 * other frame is left to step(). Half of the time of a walk is spent here, so nothing is done that can be done after.
 */
static inline void run_plain(struct walker *k, u64 until)
{
	const u64 end = until < k->high ? until : k->high, plain = cfi_epoch() | RULE_SP, pc = k->pc;
	union arena_slot *begin = &k->slot[k->done.slots], *slot = begin, *saved_bp = NULL;
	union arena_slot *limit = &k->slot[STACK_SLOTS - 4];
	struct slot_extra *extra = &k->extra[k->done.slots];
	const u64 *power = &hash_power[k->hash.frames];
	u64 sp = k->sp, mixed = cfi_mixed(pc), *table = cfi_table;
	hash_sum sum = k->hash.sum;

	for (; likely(slot < limit); slot++, extra++) {
		u64 word = __atomic_load_n(cfi_entry(table, mixed), __ATOMIC_RELAXED), cfa = sp + (u64)cfi_cfa(word);

		if (((word ^ (mixed << 32 | plain)) & (~CFI_RULE | CFI_KIND)) || cfa > end)
			break;
		saved_bp = word & CFI_BP ? slot : saved_bp;
		slot->at = cfa - 8;
		slot->value = *(const u64 *)(cfa - 8);
		*extra = (struct slot_extra){ .chain = UNCHAINED };
		mixed = cfi_mixed(slot->value);
		sum += (hash_sum)hash_weight_of_mixed(mixed) * *power++;
		sp = cfa;
	}
	if (slot > begin && !slot[-1].value)    /* the end: it adds nothing to the sum, and is step()'s */
		slot--;
	if (slot == begin)
		return;
	k->done.slots += (u32)(slot - begin);
	k->hash.sum = sum;
	k->hash.frames += (u32)(slot - begin);
	k->pc = slot[-1].value;
	k->sp = slot[-1].at + 8;
	k->frame = (int)k->done.slots - 1;
	if (saved_bp && saved_bp < slot)
		take_saved_bp(k, (u32)(saved_bp - k->slot), saved_bp == begin ? pc : saved_bp[-1].value);
}

/* ---- joining the last stack ------------------------------------------------------------ */

enum {
	FIRST_GAP = 64,                 /* bytes of stack to the second try, four times as many for each one after */
	LINKS_MAX = 12,                 /* a path of many pieces is made one */
};

/* The last stack from its next return address outwards, which lies at `next`. */
struct last_stack {
	const struct stack_cache *s;
	struct path at;
	u64 next;
	u64 gap;                        /* a stack that is shifted as a whole never joins: ever fewer tries */
};

static struct path path_from(const struct stack_cache *s, struct path p, u32 skip)
{
	return skip < p.slots ? (struct path){ p.first + skip, p.slots - skip } : path_link(s, p)->outside;
}

static void seek(struct last_stack *l, u64 slot)
{
	for (; l->at.slots; l->at = path_link(l->s, l->at)->outside) {
		for (; l->at.slots; l->at.first++, l->at.slots--) {
			l->next = l->s->arena[l->at.first].at;
			if (l->next >= slot && l->s->extra[l->at.first].chain)
				return;
		}
	}
	l->next = UINT64_MAX;
}

static u32 path_slots(const struct stack_cache *s, struct path p)
{
	return p.slots + path_link(s, p)->slots;
}

/*
 * Where the frames outside hang on rbp, the last stack has the slot that its rbp came from a little behind the joined
 * one, though it lies inside of it: that slot is the last stack's own. Returns how far behind; 0: it does not.
 */
static u32 own_bp_slot(const struct last_stack *l)
{
	if (l->s->extra[l->at.first].needs_bp)
		for (u32 i = 1; i < l->at.slots; i++)
			if (l->s->arena[l->at.first + i].at < l->next)
				return i;
	return 0;
}

/* Frames outside of the one that was joined, and what goes with them. Theirs may not have been worked out, but from here it can be. */
static void copy_slots(struct walker *k, struct path p)
{
	const struct stack_cache *s = &k->c->stacks;

	for (u32 i = p.first; i < p.first + p.slots; i++) {
		u64 chain = 0;

		if (s->extra[i].chain) {
			chain = chain_outside(k->extra[k->frame].chain, k->pc);
			k->frame = (int)k->done.slots;
			k->pc = s->arena[i].value;
		}
		push(k, s->arena[i].at, s->arena[i].value, chain);
		k->extra[k->done.slots - 1].needs_bp = s->extra[i].needs_bp;
	}
}

static bool slots_unchanged(const struct stack_cache *s, struct path p)
{
	for (u32 i = p.first; i < p.first + p.slots; i++)
		if (*(const u64 *)s->arena[i].at != s->arena[i].value)
			return false;
	return true;
}

/* The last stack had the same return address at `slot`, and what its walk went on with. */
static bool is_at(const struct last_stack *l, const struct walker *k, u64 slot)
{
	u64 needs_bp;

	if (l->next != slot || l->s->arena[l->at.first].value != k->pc)
		return false;
	needs_bp = l->s->extra[l->at.first].needs_bp;
	return !needs_bp || needs_bp == k->bp;
}

static void join(struct walker *k, const struct last_stack *l, struct path copied, struct path outside)
{
	const struct slot_extra *there = &l->s->extra[l->at.first];

	stack_chain(&k->c->stacks, l->at.first, l->at.first + l->at.slots);
	k->extra[k->frame].chain = there->chain;
	hash_join(&k->hash, k->pc, there->chain);
	if (there->needs_bp)
		depend_on_bp(k);
	copy_slots(k, copied);
	if (outside.slots && path_link(l->s, outside)->links >= LINKS_MAX)
		for (; outside.slots; outside = path_link(l->s, outside)->outside)
			copy_slots(k, outside);
	k->done.outside = outside;
}

/* The walk has come to `slot`, at or beyond the last stack's next return address: is all outside of it the same? */
static __attribute__((noinline)) bool try_join(struct walker *k, struct last_stack *l, u64 slot)
{
	const struct stack_cache *s = l->s;
	struct path copied, outside;
	u32 own;

	seek(l, slot);
	if (!is_at(l, k, slot)) {
		seek(l, slot + l->gap);
		l->gap *= 4;
		return false;
	}
	own = own_bp_slot(l);
	copied = (struct path){ l->at.first + 1, own ? own - 1 : 0 };
	outside = path_from(s, l->at, own + 1);
	if (k->done.slots + path_slots(s, l->at) + 8 > STACK_SLOTS || !slots_unchanged(s, copied) || !path_unchanged(s, outside)) {
		l->next = UINT64_MAX;           /* once changed outside, no later slot can join either */
		return false;
	}
	join(k, l, copied, outside);
	return true;
}

static enum outcome walk(struct walker *k)
{
	struct last_stack last = { .s = &k->c->stacks, .at = k->c->stacks.last, .gap = FIRST_GAP };
	enum outcome o;

	seek(&last, k->sp);
	for (;;) {
		if (likely(!k->done.foreign && !(k->sp & 7)))
			run_plain(k, last.next);
		if ((o = step(k)) != WALK_STEP)
			return o;
		if (unlikely(k->sp - 8 >= last.next) && !k->done.foreign && try_join(k, &last, k->sp - 8))
			return WALK_DONE;
		if (unlikely(k->done.slots + 4 > STACK_SLOTS))
			return WALK_CUT;
	}
}

struct walk stack_walk(struct context *c, struct caller at)
{
	struct stack_cache *s = &c->stacks;
	struct walker k = {
		.done.first = s->arena_used, .c = c, .slot = &s->arena[s->arena_used], .extra = &s->extra[s->arena_used],
		.pc = at.pc, .sp = at.sp, .bp = at.bp, .low = at.sp, .high = c->stack_high, .bp_since = -1, .frame = -1,
	};

	if (at.sp < c->stack_low || at.sp >= c->stack_high) {
		k.done.foreign = true;
		k.high = at.sp & ~4095ull;
	}
	hash_add(&k.hash, at.pc);
	k.done.cut = walk(&k) == WALK_CUT;
	k.done.chain = hash_settle(k.hash.sum);
	return k.done;
}
