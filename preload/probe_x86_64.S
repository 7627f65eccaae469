/*
 * probe_x86_64.S - stubs, and the trampoline that all of them lead to.
 *
 *   caller's stack   words 1, 2 ...                    <- copied, as the real function may want them
 *                    return address
 *                    rbp                               <- rbp from here on
 *   struct probe_frame    arguments, results, site, stamp
 *                    values
 *                    the copied words                  <- rsp, aligned like the caller's (up to 64 bytes)
 *
 * The real function is called, not jumped to: return predictors, shadow stacks, unwinders and debuggers see an ordinary
 * call. The x87 stack, and what is in ymm and zmm registers above xmm, is not touched: no code on this way uses it.
 */
#include "probe.h"

	.text
	.hidden	probe_enter, probe_exit, probe_personality, probe_sites, probe_stubs
	.hidden	probe_keeping_vectors, probe_vector_mask, probe_vector_bytes
	.globl	probe_stubs, probe_keeping_vectors

	.type	probe_stubs, @function
	.p2align 6
probe_stubs:
	.cfi_startproc
	.set	site, 0
	.rept	PROBE_STUBS
	endbr64
	lea	probe_sites + site(%rip), %r11
	jmp	probe_common
	.p2align 4
	.set	site, site + SITE_BYTES
	.endr
	.cfi_endproc
	.size	probe_stubs, . - probe_stubs

	.macro	RESTORE_ARGUMENTS
	movups	0 - PROBE_FRAME(%rbp), %xmm0
	movups	16 - PROBE_FRAME(%rbp), %xmm1
	movups	32 - PROBE_FRAME(%rbp), %xmm2
	movups	48 - PROBE_FRAME(%rbp), %xmm3
	movups	64 - PROBE_FRAME(%rbp), %xmm4
	movups	80 - PROBE_FRAME(%rbp), %xmm5
	movups	96 - PROBE_FRAME(%rbp), %xmm6
	movups	112 - PROBE_FRAME(%rbp), %xmm7
	mov	FRAME_REG + 0 - PROBE_FRAME(%rbp), %rdi
	mov	FRAME_REG + 8 - PROBE_FRAME(%rbp), %rsi
	mov	FRAME_REG + 16 - PROBE_FRAME(%rbp), %rdx
	mov	FRAME_REG + 24 - PROBE_FRAME(%rbp), %rcx
	mov	FRAME_REG + 32 - PROBE_FRAME(%rbp), %r8
	mov	FRAME_REG + 40 - PROBE_FRAME(%rbp), %r9
	mov	FRAME_RAX + 0 - PROBE_FRAME(%rbp), %rax
	mov	FRAME_RAX + 8 - PROBE_FRAME(%rbp), %r10
	mov	FRAME_SITE - PROBE_FRAME(%rbp), %r11
	.endm

	.globl	probe_common, probe_common_end
	.hidden	probe_common, probe_common_end
	.type	probe_common, @function
	.p2align 6
probe_common:
	.cfi_startproc
	.cfi_personality 0x1b, probe_personality
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	sub	$PROBE_FRAME, %rsp
	movups	%xmm0, 0(%rsp)
	movups	%xmm1, 16(%rsp)
	movups	%xmm2, 32(%rsp)
	movups	%xmm3, 48(%rsp)
	movups	%xmm4, 64(%rsp)
	movups	%xmm5, 80(%rsp)
	movups	%xmm6, 96(%rsp)
	movups	%xmm7, 112(%rsp)
	mov	%rdi, FRAME_REG + 0(%rsp)
	mov	%rsi, FRAME_REG + 8(%rsp)
	mov	%rdx, FRAME_REG + 16(%rsp)
	mov	%rcx, FRAME_REG + 24(%rsp)
	mov	%r8, FRAME_REG + 32(%rsp)
	mov	%r9, FRAME_REG + 40(%rsp)
	mov	%rax, FRAME_RAX + 0(%rsp)
	mov	%r10, FRAME_RAX + 8(%rsp)
	mov	%r11, FRAME_SITE(%rsp)
	mov	%rsp, %rdi
	sub	SITE_VALUES(%r11), %rsp
	and	$-16, %rsp			/* as C has it, even if the caller has not: hence no movaps, either */
	call	probe_enter
	test	%rax, %rax
	js	3f

	lea	0(, %rax, 8), %rcx		/* room for the words, at the same place of a 64-byte line as the caller's */
	sub	%rcx, %rsp
	lea	-16(%rsp), %rcx
	sub	%rbp, %rcx
	and	$63, %ecx
	sub	%rcx, %rsp
4:	test	$3, %al
	jnz	5f
	sub	$4, %rax
	js	2f
1:	mov	16(%rbp, %rax, 8), %rcx		/* by words: wider loads would wait for the caller's own stores */
	mov	24(%rbp, %rax, 8), %rdx
	mov	32(%rbp, %rax, 8), %rsi
	mov	40(%rbp, %rax, 8), %rdi
	mov	%rcx, 0(%rsp, %rax, 8)
	mov	%rdx, 8(%rsp, %rax, 8)
	mov	%rsi, 16(%rsp, %rax, 8)
	mov	%rdi, 24(%rsp, %rax, 8)
	sub	$4, %rax
	jns	1b
2:	RESTORE_ARGUMENTS
	call	*(%r11)

	mov	%rax, FRAME_RET + 0 - PROBE_FRAME(%rbp)
	mov	%rdx, FRAME_RET + 8 - PROBE_FRAME(%rbp)
	movups	%xmm0, FRAME_FRET + 0 - PROBE_FRAME(%rbp)
	movups	%xmm1, FRAME_FRET + 16 - PROBE_FRAME(%rbp)
	lea	-PROBE_FRAME(%rbp), %rdi
	and	$-16, %rsp
	call	probe_exit
	mov	FRAME_RET + 0 - PROBE_FRAME(%rbp), %rax
	mov	FRAME_RET + 8 - PROBE_FRAME(%rbp), %rdx
	movups	FRAME_FRET + 0 - PROBE_FRAME(%rbp), %xmm0
	movups	FRAME_FRET + 16 - PROBE_FRAME(%rbp), %xmm1
	.cfi_remember_state
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret

	.cfi_restore_state
	.cfi_remember_state
3:	RESTORE_ARGUMENTS
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	jmp	*(%r11)
	.cfi_restore_state
5:	mov	8(%rbp, %rax, 8), %rcx		/* at the end of a stack: as many as there are */
	mov	%rcx, -8(%rsp, %rax, 8)
	dec	%rax
	jmp	4b
	.cfi_endproc
	.size	probe_common, . - probe_common
probe_common_end:

/* probe_keeping_vectors(f, argument): returns f(argument), with all vector and x87 registers as they were. */
	.type	probe_keeping_vectors, @function
	.p2align 4
probe_keeping_vectors:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	push	%rbx
	.cfi_offset %rbx, -24
	mov	%rdi, %rax
	mov	%rsi, %rdi
	mov	probe_vector_bytes(%rip), %ecx
	sub	%rcx, %rsp
	and	$-64, %rsp
	mov	%rsp, %rbx
	test	%ecx, %ecx
	jz	1f
	mov	%rax, %r8
	xor	%eax, %eax			/* XSAVE reads its header, and leaves most of it as it was */
	mov	%rax, 512(%rbx)
	mov	%rax, 520(%rbx)
	mov	%rax, 528(%rbx)
	mov	%rax, 536(%rbx)
	mov	%rax, 544(%rbx)
	mov	%rax, 552(%rbx)
	mov	%rax, 560(%rbx)
	mov	%rax, 568(%rbx)
	xor	%edx, %edx
	mov	probe_vector_mask(%rip), %eax
	xsave64	(%rbx)
	mov	%r8, %rax
1:	call	*%rax
	mov	%rax, %rcx
	mov	probe_vector_mask(%rip), %eax
	test	%eax, %eax
	jz	2f
	xor	%edx, %edx
	xrstor64 (%rbx)
2:	mov	%rcx, %rax
	mov	-8(%rbp), %rbx
	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size	probe_keeping_vectors, . - probe_keeping_vectors

	.section .note.GNU-stack, "", @progbits
