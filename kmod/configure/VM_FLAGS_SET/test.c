// SPDX-License-Identifier: GPL-2.0
/* vm_flags became read-only, with accessors, in bc292ab00f6c (v6.3). */
#include <linux/mm.h>

void gw_probe(struct vm_area_struct *vma);
void gw_probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_DONTDUMP);
	vm_flags_clear(vma, VM_MAYWRITE);
}
