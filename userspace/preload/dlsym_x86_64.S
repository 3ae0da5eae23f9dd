/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dlsym(3): names of libcuda's loaders go to gw_dlsym, all others jump to the
 * next definition with every register and the stack as they were. That one
 * looks at its return address to know whose RTLD_NEXT is meant.
 */
	.text
	.globl	dlsym
	.type	dlsym, @function
dlsym:
	.cfi_startproc
	endbr64
	cmpq	$0, gw_next_dlsym(%rip)
	je	3f
1:	testq	%rsi, %rsi
	je	2f
	cmpb	$0x63, (%rsi)		/* 'c' */
	jne	2f
	cmpb	$0x75, 1(%rsi)		/* 'u' */
	jne	2f
	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	movq	%rsi, %rdi
	call	gw_dlsym_wanted
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	testl	%eax, %eax
	je	2f
	jmp	gw_dlsym
2:	jmp	*gw_next_dlsym(%rip)
3:	pushq	%rdi
	.cfi_adjust_cfa_offset 8
	pushq	%rsi
	.cfi_adjust_cfa_offset 8
	subq	$8, %rsp
	.cfi_adjust_cfa_offset 8
	call	gw_dlsym_resolve
	addq	$8, %rsp
	.cfi_adjust_cfa_offset -8
	popq	%rsi
	.cfi_adjust_cfa_offset -8
	popq	%rdi
	.cfi_adjust_cfa_offset -8
	cmpq	$0, gw_next_dlsym(%rip)
	jne	1b
	xorl	%eax, %eax		/* no dlsym at all: nothing is found */
	ret
	.cfi_endproc
	.size	dlsym, .-dlsym
	.section .note.GNU-stack,"",@progbits
