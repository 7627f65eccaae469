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
	RULE_NONE,                  /* no CFI, or it needs an expression: libunwind's work */
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
struct rule cfi_rule(u64 return_address);

#endif
