// SPDX-License-Identifier: GPL-2.0
/* vm_area_desc.vm_flags is a word where vma_flags has not replaced it yet. */
#include <linux/mm.h>

unsigned long gw_probe(const struct vm_area_desc *desc);
unsigned long gw_probe(const struct vm_area_desc *desc)
{
	return desc->vm_flags;
}
