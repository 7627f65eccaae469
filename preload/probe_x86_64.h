/*
 * probe_x86_64.h - what the probe engine knows of the machine, beside its trampoline (probe_x86_64.S): the frame that keeps a call's
 * registers, what relocations are called, and what C has no words for. Included by probe.h; another machine has its own two files.
 */
#ifndef PROBE_X86_64_H
#define PROBE_X86_64_H

/* What the trampoline knows of the frame. */
#define PROBE_FRAME 272                 /* sizeof(struct probe_frame), without what lies above: the caller's */
#define FRAME_REG 128
#define FRAME_RAX 176
#define FRAME_FRET 192
#define FRAME_RET 224
#define FRAME_SITE 240

#ifndef __ASSEMBLER__

#include <cpuid.h>
#include <elf.h>
#include <emmintrin.h>
#include <mlprof/probes.h>

/* Relocations that name a function: of a call, of an address in code, of one in data. */
enum { RELOC_CALL = R_X86_64_JUMP_SLOT, RELOC_CODE = R_X86_64_GLOB_DAT, RELOC_DATA = R_X86_64_64 };

enum { UNWIND_FRAME = 6 };              /* rbp, by which the trampoline finds its frame, as unwinders count registers */

struct probe_frame {
	u64 xmm[8][2];
	u64 reg[6];                     /* rdi rsi rdx rcx r8 r9 */
	u64 rax, r10;
	u64 fret[2][2];                 /* xmm0 xmm1 */
	u64 ret[2];                     /* rax rdx */
	struct probe_site *site;
	u64 begin;
	u32 used;                       /* bytes of values; they lie right below the frame */
	u16 bad;                        /* values that could not be read */
	u16 words;                      /* of the caller's stack that can be read */
	u64 pad;
	u64 rbp, pc;                    /* the caller's */
	u64 stack[];
};

static_assert(offsetof(struct probe_frame, rbp) == PROBE_FRAME && offsetof(struct probe_frame, reg) == FRAME_REG &&
	      offsetof(struct probe_frame, rax) == FRAME_RAX && offsetof(struct probe_frame, fret) == FRAME_FRET &&
	      offsetof(struct probe_frame, ret) == FRAME_RET && offsetof(struct probe_frame, site) == FRAME_SITE, "frame");

/* Which of these 16 bytes are NUL: a bit for each. */
static inline u32 zero_bytes(u64 from)
{
	__m128i bytes = _mm_loadu_si128((const __m128i *)from);

	return (u32)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
}

/* What XSAVE has to keep of x87, SSE, AVX and AVX-512, and the room that takes. */
static inline void measure_vectors(u32 *mask, u32 *bytes)
{
	enum { WANTED = 0xe7, OSXSAVE = 1 << 27 };
	u32 a, b, c, d, enabled;

	if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & OSXSAVE))
		return;
	__asm__("xgetbv" : "=a"(enabled), "=d"(d) : "c"(0));
	*bytes = 576;
	for (u32 i = 2; i < 8; i++)
		if (enabled & WANTED & 1u << i) {
			__cpuid_count(0xd, i, a, b, c, d);
			*bytes = a + b > *bytes ? a + b : *bytes;
		}
	*bytes = (*bytes + 63) & ~63u;
	*mask = enabled & WANTED;
}

#endif
#endif
