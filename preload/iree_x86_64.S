/*
 * iree_x86_64.S - what IREE finds in its tables instead of its kernels: each thunk adds its number as fourth argument.
 */
#include "iree.h"

	.text
	.hidden	iree_tile
	.hidden	iree_thunks
	.globl	iree_thunks
	.type	iree_thunks, @function
	.p2align 4
iree_thunks:
	.cfi_startproc
	.set	number, 0
	.rept	IREE_THUNKS
	endbr64
	mov	$number, %ecx
	jmp	iree_tile
	.p2align 4
	.set	number, number + 1
	.endr
	.cfi_endproc
	.size	iree_thunks, .-iree_thunks

	.section .note.GNU-stack, "", @progbits
