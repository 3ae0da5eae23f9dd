// SPDX-License-Identifier: GPL-2.0
/* file_operations.mmap_prepare came in c84bf6dd2b83 (v6.16). */
#include <linux/fs.h>
#include <linux/mm.h>

int gw_probe(const struct file_operations *fops, struct vm_area_desc *desc);
int gw_probe(const struct file_operations *fops, struct vm_area_desc *desc)
{
	return fops->mmap_prepare(desc);
}
