/* SPDX-License-Identifier: GPL-2.0 */
/* Changing the flags of a mapping. */
#ifndef GW_COMPAT_MM_H
#define GW_COMPAT_MM_H

#include <linux/mm.h>

static inline void gw_vm_flags_mod(struct vm_area_struct *vma, unsigned long set,
				   unsigned long clear)
{
#ifdef HAS_VM_FLAGS_SET
	vm_flags_set(vma, set);
	vm_flags_clear(vma, clear);
#else
	vma->vm_flags = (vma->vm_flags | set) & ~clear;
#endif
}

#ifdef HAS_MMAP_PREPARE
/* Flags of a mapping in the making. */
static inline unsigned long gw_vm_desc_flags(const struct vm_area_desc *desc)
{
#ifdef HAS_VM_DESC_FLAGS_WORD
	return desc->vm_flags;
#else
	/* A bitmap since the flags outgrew a word; the first word holds ours. */
	return *(const unsigned long *)&desc->vma_flags;
#endif
}
#endif

#endif
