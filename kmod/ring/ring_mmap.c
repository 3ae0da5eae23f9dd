// SPDX-License-Identifier: GPL-2.0
/*
 * ring_mmap.c - maps a set into its reader: the consumer page alone may be
 * written, the rest never, whatever mprotect() says later.
 */
#include <linux/mm.h>

#include "compat/mm.h"
#include "ring/ring.h"

/* Page @index of the mapping, NULL beyond its end. */
static struct page *gw_ring_page(struct gw_ring_set *set, unsigned long index)
{
	unsigned long stride = 2 + 2 * (unsigned long)set->data_pages;
	struct gw_ring *ring;

	if (index == 0)
		return virt_to_page(set->meta);
	index--;
	if (index / stride >= set->nr_cpus)
		return NULL;
	ring = &set->rings[index / stride];
	index %= stride;
	return index == 0 ? ring->cons_page : ring->pages[index - 1];
}

static bool gw_ring_is_consumer_page(struct gw_ring_set *set, unsigned long index)
{
	return index > 0 && (index - 1) % (2 + 2 * (unsigned long)set->data_pages) == 0;
}

int gw_ring_mmap(struct gw_ring_set *set, struct vm_area_struct *vma)
{
	unsigned long pages = vma_pages(vma), first = vma->vm_pgoff, i;
	unsigned long clear = VM_MAYEXEC;
	int err;

	if (vma->vm_flags & VM_EXEC)
		return -EPERM;
	if (!(vma->vm_flags & VM_MAYSHARE)) /* VM_SHARED goes with a read-only file */
		return -EINVAL;
	if (first + pages < first || !gw_ring_page(set, first + pages - 1))
		return -EINVAL;
	if (pages != 1 || !gw_ring_is_consumer_page(set, first)) {
		if (vma->vm_flags & VM_WRITE)
			return -EPERM;
		clear |= VM_MAYWRITE;
	}
	gw_vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, clear);

	for (i = 0; i < pages; i++) {
		err = vm_insert_page(vma, vma->vm_start + i * PAGE_SIZE,
				     gw_ring_page(set, first + i));
		if (err)
			return err;
	}
	return 0;
}
