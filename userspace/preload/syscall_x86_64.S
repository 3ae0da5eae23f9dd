/* SPDX-License-Identifier: Apache-2.0 */
/*
 * syscall(2) as a function: calls that the recorder watches go to gw_syscall,
 * all others jump to the next definition with every register and the stack as
 * they were, so that clone and vfork may return as they like.
 */
	.text
	.globl	syscall
	.type	syscall, @function
syscall:
	.cfi_startproc
	endbr64
	cmpq	$511, %rdi
	ja	1f
	leaq	gw_syscall_watched(%rip), %rax
	cmpb	$0, (%rax,%rdi)
	je	1f
	jmp	gw_syscall
1:	movq	gw_next_syscall(%rip), %rax
	testq	%rax, %rax
	je	2f
	jmp	*%rax
2:	movq	%rdi, %rax
	movq	%rsi, %rdi
	movq	%rdx, %rsi
	movq	%rcx, %rdx
	movq	%r8, %r10
	movq	%r9, %r8
	movq	8(%rsp), %r9
	syscall
	cmpq	$-4095, %rax
	jae	3f
	ret
3:	negl	%eax
	pushq	%rax
	.cfi_adjust_cfa_offset 8
	call	__errno_location@PLT
	popq	%rdx
	.cfi_adjust_cfa_offset -8
	movl	%edx, (%rax)
	movq	$-1, %rax
	ret
	.cfi_endproc
	.size	syscall, .-syscall
	.section .note.GNU-stack,"",@progbits
