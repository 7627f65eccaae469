/*
 * cfi.c - call frame information becomes rules, once per address.
 *
 *   pc --> _dl_find_object (lock-free) --> .eh_frame_hdr (sorted) --> FDE --> CIE --> run both --> rule
 *
 * A frame that is on a stack keeps its module loaded, so nothing is parsed that could be unmapped meanwhile.
 */
#include "cfi.h"
#include "modules.h"
#include <link.h>
#include <string.h>

u64 *cfi_table;

bool cfi_start(void)
{
	if (!cfi_table)
		cfi_table = sys_memory(sizeof *cfi_table << CFI_TABLE_BITS);
	return cfi_table;
}

void cfi_forget(void)
{
	for (u32 i = 0; i < 1u << CFI_TABLE_BITS; i++)
		__atomic_store_n(&cfi_table[i], 0, __ATOMIC_RELAXED);
}

/* ---- reading .eh_frame ---------------------------------------------------------------- */

enum { REG_BP = 6, REG_SP = 7, REG_RA = 16 };
enum { AT_SAME, AT_OFFSET, AT_UNDEFINED, AT_BP, AT_OTHER };     /* where a register's value is; AT_BP: *rbp */

struct place { i64 offset; u8 how; };
struct row {                            /* what holds at one address */
	u64 cfa_reg;
	i64 cfa_offset;
	const u8 *cfa_expr;             /* NULL: register + offset */
	struct place bp, ra;
};

struct cie {
	u64 code_align;
	i64 data_align;
	u8 pointer_encoding;
	bool signal, augmented;
	const u8 *program, *end;
};

static u64 uleb(const u8 **p)
{
	u64 value = 0;

	for (u32 shift = 0;; shift += 7) {
		u8 byte = *(*p)++;

		if (shift < 64)
			value |= (u64)(byte & 127) << shift;
		if (!(byte & 128))
			return value;
	}
}

static i64 sleb(const u8 **p)
{
	u64 value = 0;

	for (u32 shift = 0;;) {
		u8 byte = *(*p)++;

		if (shift < 64)
			value |= (u64)(byte & 127) << shift;
		shift += 7;
		if (byte & 128)
			continue;
		if (shift < 64 && (byte & 64))
			value |= ~0ull << shift;
		return (i64)value;
	}
}

#define READ_AS(type)                                                                                  \
	({                                                                                             \
		type value_;                                                                           \
		memcpy(&value_, *p, sizeof value_);                                                    \
		*p += sizeof value_;                                                                   \
		value_;                                                                                \
	})

/* A pointer as DW_EH_PE_* says: low half how it is stored, 0x10 relative to its own place. */
static u64 encoded(const u8 **p, u8 encoding)
{
	const u8 *at = *p;
	u64 value;

	switch (encoding & 15) {
	case 1: value = uleb(p); break;
	case 2: value = READ_AS(u16); break;
	case 3: value = READ_AS(u32); break;
	case 9: value = (u64)sleb(p); break;
	case 10: value = (u64)(i64)READ_AS(int16_t); break;
	case 11: value = (u64)(i64)READ_AS(int32_t); break;
	default: value = READ_AS(u64); break;
	}
	return (encoding & 0x70) == 0x10 ? value + (u64)at : value;
}

static void set_place(struct row *r, u64 reg, u8 how, i64 offset)
{
	if (reg == REG_BP)
		r->bp = (struct place){ offset, how };
	if (reg == REG_RA)
		r->ra = (struct place){ offset, how };
}

static void restore_place(struct row *r, u64 reg, const struct row *initial)
{
	if (reg == REG_BP)
		r->bp = initial->bp;
	if (reg == REG_RA)
		r->ra = initial->ra;
}

/* DW_CFA_expression for rbp in an over-aligned frame is always "at rbp": DW_OP_breg6 0. */
static u8 expression_place(u64 reg, u8 op, const u8 *expr, u64 length)
{
	return op == 0x10 && reg == REG_BP && length == 2 && expr[0] == 0x76 && expr[1] == 0 ? AT_BP : AT_OTHER;
}

/* Runs call frame instructions up to pc. `initial` is what the CIE set up, NULL while running the CIE's own. */
static bool run(const u8 *at, const u8 *end, const struct cie *cie, u64 loc, u64 pc, struct row *r, const struct row *initial)
{
	const u8 **p = &at;
	struct row saved[8];
	u32 depth = 0;
	u64 reg, length;

	while (at < end && loc <= pc) {
		u8 op = *at++, low = op & 63;

		switch (op >> 6) {
		case 1: loc += low * cie->code_align; continue;
		case 2: set_place(r, low, AT_OFFSET, (i64)uleb(p) * cie->data_align); continue;
		case 3:
			if (initial)
				restore_place(r, low, initial);
			continue;
		}
		switch (low) {
		case 0x00: break;
		case 0x01: loc = encoded(p, cie->pointer_encoding); break;
		case 0x02: loc += READ_AS(u8) * cie->code_align; break;
		case 0x03: loc += READ_AS(u16) * cie->code_align; break;
		case 0x04: loc += READ_AS(u32) * cie->code_align; break;
		case 0x05: reg = uleb(p); set_place(r, reg, AT_OFFSET, (i64)uleb(p) * cie->data_align); break;
		case 0x06:
			reg = uleb(p);
			if (initial)
				restore_place(r, reg, initial);
			break;
		case 0x07: set_place(r, uleb(p), AT_UNDEFINED, 0); break;
		case 0x08: set_place(r, uleb(p), AT_SAME, 0); break;
		case 0x09: reg = uleb(p); uleb(p); set_place(r, reg, AT_OTHER, 0); break;
		case 0x0a:
			if (depth == sizeof saved / sizeof *saved)
				return false;
			saved[depth++] = *r;
			break;
		case 0x0b:
			if (!depth)
				return false;
			*r = saved[--depth];
			break;
		case 0x0c: r->cfa_reg = uleb(p); r->cfa_offset = (i64)uleb(p); r->cfa_expr = NULL; break;
		case 0x0d: r->cfa_reg = uleb(p); r->cfa_expr = NULL; break;
		case 0x0e: r->cfa_offset = (i64)uleb(p); break;
		case 0x0f: r->cfa_expr = at; length = uleb(p); at += length; break;
		case 0x10: case 0x16:
			reg = uleb(p);
			length = uleb(p);
			set_place(r, reg, expression_place(reg, low, at, length), 0);
			at += length;
			break;
		case 0x11: reg = uleb(p); set_place(r, reg, AT_OFFSET, sleb(p) * cie->data_align); break;
		case 0x12: r->cfa_reg = uleb(p); r->cfa_offset = sleb(p) * cie->data_align; r->cfa_expr = NULL; break;
		case 0x13: r->cfa_offset = sleb(p) * cie->data_align; break;
		case 0x14: reg = uleb(p); uleb(p); set_place(r, reg, AT_OTHER, 0); break;
		case 0x15: reg = uleb(p); sleb(p); set_place(r, reg, AT_OTHER, 0); break;
		case 0x2e: uleb(p); break;
		default: return false;
		}
	}
	return true;
}

static bool read_cie(const u8 *at, struct cie *c)
{
	const u8 **p = &at;
	u32 length = READ_AS(u32);
	const char *augmentation;
	u8 version;

	c->end = at + length;
	at += 4;                        /* its id */
	version = *at++;
	augmentation = (const char *)at;
	at += strlen(augmentation) + 1;
	c->code_align = uleb(p);
	c->data_align = sleb(p);
	if (version == 1)
		at++;
	else
		uleb(p);
	c->pointer_encoding = 0;
	c->signal = false;
	c->augmented = augmentation[0] == 'z';
	if (c->augmented) {
		u64 bytes = uleb(p);
		const u8 *after = at + bytes;

		for (const char *a = augmentation + 1; *a; a++) {
			if (*a == 'R')
				c->pointer_encoding = *at++;
			else if (*a == 'L')
				at++;
			else if (*a == 'P') {
				u8 encoding = *at++;

				encoded(p, encoding & 0x7f);
			} else if (*a == 'S')
				c->signal = true;
			else
				break;
		}
		at = after;
	} else if (augmentation[0]) {
		return false;
	}
	c->program = at;
	return true;
}

/* Binary search in .eh_frame_hdr; only the form that every linker writes (sorted, relative to the header, 4 bytes). */
static const u8 *find_fde(const u8 *header, u64 pc)
{
	const u8 *at = header + 4;
	const struct { int32_t start, fde; } *row;
	i64 key = (i64)(pc - (u64)header);
	u64 low = 0, high;

	if (header[0] != 1 || header[3] != 0x3b)
		return NULL;
	encoded(&at, header[1]);
	high = encoded(&at, header[2]);
	row = (const void *)at;
	if (!high || key < row[0].start)
		return NULL;
	while (high - low > 1) {
		u64 middle = (low + high) / 2;

		if (row[middle].start <= key)
			low = middle;
		else
			high = middle;
	}
	return header + row[low].fde;
}

/* CFA = *(rbp + n): DW_OP_breg6 n; DW_OP_deref. */
static bool drap_offset(const struct row *r, int32_t *offset)
{
	const u8 *at = r->cfa_expr;
	u64 length = uleb(&at);
	const u8 *end = at + length;

	if (length < 3 || *at++ != 0x76)
		return false;
	*offset = (int32_t)sleb(&at);
	return at == end - 1 && *at == 0x06;
}

static struct rule simplify(const struct row *r)
{
	struct rule rule = { 0 };

	if (r->ra.how == AT_UNDEFINED)
		rule.kind = RULE_END;
	else if (r->ra.how != AT_OFFSET || r->ra.offset != -8)
		rule.kind = RULE_NONE;
	else if (r->cfa_expr)
		rule.kind = r->bp.how == AT_BP && drap_offset(r, &rule.cfa) ? RULE_DRAP : RULE_NONE;
	else if ((r->cfa_reg == REG_SP || r->cfa_reg == REG_BP) && (r->bp.how == AT_SAME || r->bp.how == AT_OFFSET)) {
		rule.kind = r->cfa_reg == REG_SP ? RULE_SP : RULE_BP;
		rule.cfa = (int32_t)r->cfa_offset;
		rule.bp = r->bp.how == AT_OFFSET ? (int16_t)r->bp.offset : 0;
	}
	return rule;
}

static struct rule parse(u64 return_address)
{
	u64 pc = return_address - 1;            /* the call, not what follows it */
	struct rule none = { .kind = RULE_NONE };
	struct row initial = { 0 }, row;
	struct dl_find_object object;
	const u8 *fde, *at, *end;
	struct cie cie;
	u64 start, size;
	u32 length;

	if (_dl_find_object((void *)pc, &object) != 0)
		return none;
	modules_meet(&object);
	if (!object.dlfo_eh_frame || !(fde = find_fde(object.dlfo_eh_frame, pc)))
		return none;
	memcpy(&length, fde, 4);
	if (!length || length == 0xffffffff)
		return none;
	end = fde + 4 + length;
	at = fde + 4;
	if (!read_cie(at - *(const u32 *)at, &cie))
		return none;
	if (cie.signal)
		return (struct rule){ .kind = RULE_SIGNAL };
	at += 4;
	start = encoded(&at, cie.pointer_encoding);
	size = encoded(&at, cie.pointer_encoding & 15);
	if (pc < start || pc >= start + size)
		return none;
	if (cie.augmented) {
		u64 bytes = uleb(&at);

		at += bytes;
	}
	if (!run(cie.program, cie.end, &cie, 0, ~0ull, &initial, NULL))
		return none;
	row = initial;
	if (!run(at, end, &cie, start, pc, &row, &initial))
		return none;
	return simplify(&row);
}

static bool fits(struct rule r)
{
	if (r.kind == RULE_SP && r.cfa < 8)
		return false;
	return r.cfa >= -(8 << 12) && r.cfa < 8 << 12 && !(r.cfa & 7) && r.bp >= -(8 << 9) && r.bp < 8 << 9 && !(r.bp & 7);
}

/* What is not known is not kept: code may come to be known there, as a JIT writes it or a library is loaded. */
struct rule cfi_parse(u64 return_address)
{
	struct rule r = parse(return_address);
	u64 mixed = cfi_mixed(return_address);

	if (r.kind != RULE_NONE && fits(r) && !(return_address >> CFI_ADDRESS_BITS))
		__atomic_store_n(cfi_entry(cfi_table, mixed),
				 cfi_tag(mixed) | r.kind | ((u64)(r.cfa / 8) & 0x1fff) << 3 | ((u64)(r.bp / 8) & 0x3ff) << 16, __ATOMIC_RELAXED);
	return r;
}
