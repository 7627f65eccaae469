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
};

bool cfi_start(void);
void cfi_forget(void);              /* before an epoch's number comes again */
struct rule cfi_parse(u64 return_address);

/*
 * One table for all threads, without a lock: an entry is one word.
 *
 *   kind:3 | cfa / 8:13 | bp / 8:10 | epoch:6 | what is left of the address once the index is taken off:32
 *
 * Multiplying by an odd number turns 47 bits of address into 47 others, one to one: 15 of them are the index, so the
 * other 32 name the address exactly. A rule with wider numbers is parsed each time. A word half as long as {address,
 * rule} matters: with large programs the table lives in the second-level cache. A RULE_SP in it leads outwards.
 */
enum { CFI_TABLE_BITS = 15, CFI_ADDRESS_BITS = 32 + CFI_TABLE_BITS, CFI_EPOCHS = 64 };
extern u64 *cfi_table;

#define CFI_KIND 7ull
#define CFI_BP (1023ull << 16)
#define CFI_RULE ((1ull << 26) - 1)

static inline u64 cfi_mixed(u64 return_address) { return return_address * 0x9e3779b97f4a7c15ull; }
static inline u64 *cfi_entry(u64 *table, u64 mixed) { return &table[mixed >> 32 & ((1u << CFI_TABLE_BITS) - 1)]; }
static inline u64 cfi_epoch(void) { return (guest.epoch % CFI_EPOCHS) << 26; }
static inline u64 cfi_tag(u64 mixed) { return mixed << 32 | cfi_epoch(); }

/* The kind lies below the lowest bit that a multiple of 8 has. */
static inline i64 cfi_cfa(u64 word) { return (i64)(int16_t)word & -8; }
static inline i64 cfi_bp(u64 word) { return (i64)((int32_t)((u32)word << 6) >> 22) * 8; }

/* RULE_NONE: not in the table. */
static inline struct rule cfi_peek(u64 return_address)
{
	u64 mixed = cfi_mixed(return_address), word = __atomic_load_n(cfi_entry(cfi_table, mixed), __ATOMIC_RELAXED);

	if (unlikely((word & ~CFI_RULE) != cfi_tag(mixed)))
		return (struct rule){ .kind = RULE_NONE };
	return (struct rule){ .kind = word & CFI_KIND, .cfa = (int32_t)cfi_cfa(word), .bp = (int16_t)cfi_bp(word) };
}

static inline struct rule cfi_rule(u64 return_address)
{
	struct rule r = cfi_peek(return_address);

	return likely(r.kind != RULE_NONE) ? r : cfi_parse(return_address);
}

#endif
