/* SPDX-License-Identifier: Apache-2.0 */
/* The compiled kernels as read-only bytes. The driver wants 8-byte alignment. */
  .section .rodata
  .macro image name, file
  .balign 16
  .global gpuwatch_\name\()_image
  .global gpuwatch_\name\()_image_end
gpuwatch_\name\()_image:
  .incbin "\file"
gpuwatch_\name\()_image_end:
  .byte 0
  .endm
  image probe, "images/probe.fatbin"
  image selftest, "images/selftest.fatbin"
  image agent, "images/agent.fatbin"
  .section .note.GNU-stack,"",@progbits
