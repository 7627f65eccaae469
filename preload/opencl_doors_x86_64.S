/*
 * opencl_doors_x86_64.S - the functions that the program calls: OPENCL_LOADERS doors for each wrapper, one a loader.
 *
 * A door notes which one it is (opencl_now) and goes on to the wrapper, which finds everything else as it was called.
 */
#include "opencl_names.h"

	.text
	.hidden	opencl_doors
	.globl	opencl_doors
	.hidden	opencl_now

	.macro	DOORS wrapper
	.hidden	\wrapper
	.set	number, 0
	.rept	OPENCL_LOADERS
	.balign	OPENCL_DOOR_BYTES
	endbr64
	mov	opencl_now@gottpoff(%rip), %rax
	movl	$number, %fs:(%rax)
	jmp	\wrapper
	.set	number, number + 1
	.endr
	.endm

	.balign	OPENCL_DOOR_BYTES
opencl_doors:
#define X(name) DOORS w_##name;
	OPENCL_WRAPPED(X)
	OPENCL_EXTENSIONS(X)
#undef X

	.section .note.GNU-stack, "", @progbits
