// SPDX-License-Identifier: GPL-2.0
/*
 * blob_file.c - a stored image as a descriptor: to read, or to map shared and
 * read-only. It holds the image, and the module through its operations.
 */
#include <linux/anon_inodes.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "compat/mm.h"
#include "image/image.h"

static int gw_blob_release(struct inode *inode, struct file *file)
{
	gw_blob_put(file->private_data);
	return 0;
}

static ssize_t gw_blob_read(struct file *file, char __user *buf, size_t bytes, loff_t *pos)
{
	const struct gw_blob *blob = file->private_data;
	size_t done = 0;

	if (*pos < 0)
		return -EINVAL;
	if (*pos >= blob->bytes)
		return 0;
	bytes = min_t(u64, bytes, blob->bytes - *pos);
	while (done < bytes) {
		u64 at = *pos + done;
		size_t want = min_t(size_t, bytes - done, PAGE_SIZE - offset_in_page(at));
		const u8 *from = page_address(blob->pages[at >> PAGE_SHIFT]);
		size_t left = copy_to_user(buf + done, from + offset_in_page(at), want);

		done += want - left;
		if (left)
			break;
		if (fatal_signal_pending(current))
			break;
		cond_resched();
	}
	*pos += done;
	return done ? done : -EFAULT;
}

static loff_t gw_blob_llseek(struct file *file, loff_t offset, int whence)
{
	const struct gw_blob *blob = file->private_data;

	return fixed_size_llseek(file, offset, whence, blob->bytes);
}

static int gw_blob_mmap(struct file *file, struct vm_area_struct *vma)
{
	const struct gw_blob *blob = file->private_data;
	unsigned long pages = vma_pages(vma), first = vma->vm_pgoff, i;
	int err;

	if (vma->vm_flags & (VM_EXEC | VM_WRITE))
		return -EPERM;
	if (!(vma->vm_flags & VM_MAYSHARE))
		return -EINVAL;
	if (first + pages < first || first + pages > blob->nr_pages)
		return -EINVAL;
	gw_vm_flags_mod(vma, VM_DONTEXPAND | VM_DONTDUMP, VM_MAYEXEC | VM_MAYWRITE);
	for (i = 0; i < pages; i++) {
		err = vm_insert_page(vma, vma->vm_start + i * PAGE_SIZE, blob->pages[first + i]);
		if (err)
			return err;
	}
	return 0;
}

static const struct file_operations gw_blob_fops = {
	.owner = THIS_MODULE,
	.release = gw_blob_release,
	.read = gw_blob_read,
	.llseek = gw_blob_llseek,
	.mmap = gw_blob_mmap,
};

struct file *gw_blob_file(struct gw_blob *blob)
{
	struct file *file;

	kref_get(&blob->ref);
	file = anon_inode_getfile("[gpuwatch-image]", &gw_blob_fops, blob, O_RDONLY);
	if (IS_ERR(file)) {
		gw_blob_put(blob);
		return file;
	}
	file->f_mode |= FMODE_LSEEK | FMODE_PREAD;
	return file;
}
