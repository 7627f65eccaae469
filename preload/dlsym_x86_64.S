/*
 * dlsym_x86_64.S - dlsym, dlvsym and dlopen.
 *
 * glibc looks at who called it to answer RTLD_NEXT and RTLD_DEFAULT and to search for libraries, so a name that is not ours is passed on by a jump:
 * the real function then sees the program as its caller.
 *
 *   bind_pick(handle, name, caller, version): 0 not ours; 1 the answer is NULL, dlerror is set; else the answer
 */
	.text
	.hidden	bind_pick
	.hidden	bind_next_dlsym
	.hidden	bind_next_dlvsym
	.hidden	bind_next_dlopen
	.hidden	bind_before_dlopen
	.hidden	bind_call_returning_to

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

	.globl	dlopen
	.type	dlopen, @function
	.p2align 4
dlopen:
	.cfi_startproc
	endbr64
	push	%rdi
	.cfi_adjust_cfa_offset 8
	push	%rsi
	.cfi_adjust_cfa_offset 8
	sub	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	bind_before_dlopen
	add	$8, %rsp
	.cfi_adjust_cfa_offset -8
	pop	%rsi
	.cfi_adjust_cfa_offset -8
	pop	%rdi
	.cfi_adjust_cfa_offset -8
	jmp	*bind_next_dlopen(%rip)
	.cfi_endproc
	.size	dlopen, .-dlopen

/*
 * bind_call_returning_to(ret, function, a, b, c): calls function(a, b, c) with the address of a `ret` to return to, behind
 * which lies our own return address. With a shadow stack that cannot be: then it is NULL.
 */
	.globl	bind_call_returning_to
	.type	bind_call_returning_to, @function
	.p2align 4
bind_call_returning_to:
	.cfi_startproc
	push	%rbp
	.cfi_def_cfa_offset 16
	.cfi_offset %rbp, -16
	mov	%rsp, %rbp
	.cfi_def_cfa_register %rbp
	xor	%eax, %eax
	rdsspq	%rax			/* does nothing where there is none */
	test	%rax, %rax
	jnz	2f
	mov	%rdi, %r10
	mov	%rsi, %r11
	mov	%rdx, %rdi
	mov	%rcx, %rsi
	mov	%r8, %rdx
	lea	1f(%rip), %rax
	sub	$8, %rsp
	push	%rax
	push	%r10
	jmp	*%r11
2:	xor	%eax, %eax
1:	leave
	.cfi_def_cfa %rsp, 8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	bind_call_returning_to, .-bind_call_returning_to

	.section .note.GNU-stack, "", @progbits
