/*
 * dlsym_x86_64.S - dlsym and dlvsym.
 *
 * glibc looks at who called it to answer RTLD_NEXT and RTLD_DEFAULT, so a name that is not ours is passed on by a jump:
 * the real function then sees the program as its caller.
 *
 *   bind_pick(handle, name, caller, version): 0 not ours; 1 the answer is NULL, dlerror is set; else the answer
 */
	.text
	.hidden	bind_pick
	.hidden	bind_next_dlsym
	.hidden	bind_next_dlvsym

	.macro	HOOK name, next, version
	.globl	\name
	.type	\name, @function
	.p2align 4
\name:
	.cfi_startproc
	endbr64
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	push	%rdx
	.cfi_adjust_cfa_offset 8
	\version
	mov	24(%rsp), %rdx
	call	bind_pick
	pop	%rdx
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	test	%rax, %rax
	jz	1f
	cmp	$1, %rax
	jne	2f
	xor	%eax, %eax
2:	ret
1:	jmp	*\next(%rip)
	.cfi_endproc
	.size	\name, .-\name
	.endm

	HOOK	dlsym, bind_next_dlsym, "xor %ecx, %ecx"
	HOOK	dlvsym, bind_next_dlvsym, "mov %rdx, %rcx"

	.section .note.GNU-stack, "", @progbits
