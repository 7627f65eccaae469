/*
 * cfi.h - how to get from a return address to the frame outside of it.
 *
 * A rule is what the call frame information of one code address says, boiled down to what real code uses.
 * Rules are parsed once per address and kept in one table for all threads.
 */
#ifndef CFI_H
#define CFI_H

#include "guest.h"

enum rule_kind {
	RULE_NONE,                  /* no CFI, or it needs an expression */
	RULE_SP,                    /* CFA = rsp + offset */
	RULE_BP,                    /* CFA = rbp + offset */
	RULE_DRAP,                  /* CFA = *(rbp + offset), rbp saved at *rbp: over-aligned frames */
	RULE_END,                   /* outermost frame */
	RULE_SIGNAL,                /* the kernel's signal frame: registers lie at rsp */
};

struct rule {
	int32_t cfa;                /* offset */
	int16_t bp;                 /* where the caller's rbp is saved, from the CFA; 0: it still is in rbp */
	u8 kind;
	u8 known;                   /* 1 in a rule that was looked up: no rule is all zeros */
};

bool cfi_start(void);
struct rule cfi_parse(u64 return_address);

/*
 * One table for all threads, without a lock: an entry is {pc ^ epoch ^ rule, rule}, so that a torn pair matches no pc.
 */
enum { CFI_TABLE_BITS = 14 };
extern struct cfi_entry { u64 check, rule; } *cfi_table;

static inline u64 cfi_key(u64 return_address) { return return_address ^ guest.epoch << 48; }
static inline struct cfi_entry *cfi_entry(u64 return_address)
{
	return &cfi_table[(return_address * 0x9e3779b97f4a7c15ull) >> (64 - CFI_TABLE_BITS)];
}

static inline struct rule cfi_rule(u64 return_address)
{
	const struct cfi_entry *e = cfi_entry(return_address);
	union { u64 word; struct rule rule; } u = { __atomic_load_n(&e->rule, __ATOMIC_RELAXED) };

	if (likely((__atomic_load_n(&e->check, __ATOMIC_RELAXED) ^ u.word) == cfi_key(return_address) && u.word))
		return u.rule;
	return cfi_parse(return_address);
}

#endif
