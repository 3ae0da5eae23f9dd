// SPDX-License-Identifier: GPL-2.0
/*
 * The simulated nvidia-uvm.ko: a dynamic major "nvidia-uvm" whose minor 0 is
 * the memory node and minor 1 the tools node, each with a const table.
 */
#include <linux/cdev.h>
#include <linux/module.h>

#include "gws.h"
#include "nv.h"

static bool mmap_prepare;
module_param(mmap_prepare, bool, 0444);
MODULE_PARM_DESC(mmap_prepare, "use the file operation of that name, which kernels from 6.16 on have");

static struct nv_sim_chrdev uvm_dev, uvm_tools_dev;

static int uvm_open_entry(struct inode *inode, struct file *file)
{
	return gws_open(GWSIM_NODE_UVM, inode, file);
}

static int uvm_release_entry(struct inode *inode, struct file *file)
{
	return gws_release(GWSIM_NODE_UVM);
}

static long uvm_unlocked_ioctl_entry(struct file *file, unsigned int cmd,
				     unsigned long arg)
{
	return gws_ioctl(GWSIM_NODE_UVM, GWSIM_OP_IOCTL, cmd, arg);
}

static int uvm_mmap_entry(struct file *file, struct vm_area_struct *vma)
{
	return gws_mmap(GWSIM_NODE_UVM, file, vma);
}

static const struct file_operations uvm_fops = {
	.owner = THIS_MODULE,
	.open = uvm_open_entry,
	.release = uvm_release_entry,
	.unlocked_ioctl = uvm_unlocked_ioctl_entry,
	.compat_ioctl = uvm_unlocked_ioctl_entry,
	.mmap = uvm_mmap_entry,
};

#ifdef GWS_HAS_MMAP_PREPARE
static int uvm_mmap_prepare_entry(struct vm_area_desc *desc)
{
	return gws_mmap_prepare(GWSIM_NODE_UVM, desc);
}

static const struct file_operations uvm_prepare_fops = {
	.owner = THIS_MODULE,
	.open = uvm_open_entry,
	.release = uvm_release_entry,
	.unlocked_ioctl = uvm_unlocked_ioctl_entry,
	.compat_ioctl = uvm_unlocked_ioctl_entry,
	.mmap_prepare = uvm_mmap_prepare_entry,
};
#endif

static int uvm_tools_open_entry(struct inode *inode, struct file *file)
{
	return gws_open(GWSIM_NODE_UVM_TOOLS, inode, file);
}

static int uvm_tools_release_entry(struct inode *inode, struct file *file)
{
	return gws_release(GWSIM_NODE_UVM_TOOLS);
}

static long uvm_tools_unlocked_ioctl_entry(struct file *file, unsigned int cmd,
					   unsigned long arg)
{
	return gws_ioctl(GWSIM_NODE_UVM_TOOLS, GWSIM_OP_IOCTL, cmd, arg);
}

static const struct file_operations uvm_tools_fops = {
	.owner = THIS_MODULE,
	.open = uvm_tools_open_entry,
	.release = uvm_tools_release_entry,
	.unlocked_ioctl = uvm_tools_unlocked_ioctl_entry,
	.compat_ioctl = uvm_tools_unlocked_ioctl_entry,
};

static int __init uvm_init(void)
{
	const struct file_operations *fops = &uvm_fops;
	int ret;

	if (mmap_prepare) {
#ifdef GWS_HAS_MMAP_PREPARE
		fops = &uvm_prepare_fops;
#else
		return -EOPNOTSUPP;
#endif
	}
	ret = nv_chrdev_add(&uvm_dev, 0, 0, 1, "nvidia-uvm", fops);
	if (ret)
		return ret;
	ret = nv_chrdev_add(&uvm_tools_dev, MAJOR(uvm_dev.dev), 1, 1, "nvidia-uvm",
			    &uvm_tools_fops);
	if (ret)
		nv_chrdev_del(&uvm_dev);
	return ret;
}

static void __exit uvm_exit(void)
{
	nv_chrdev_del(&uvm_tools_dev);
	nv_chrdev_del(&uvm_dev);
}

module_init(uvm_init);
module_exit(uvm_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Simulated NVIDIA driver for tests: unified memory nodes");
