// SPDX-License-Identifier: GPL-2.0
/*
 * The simulated nvidia-modeset.ko: minor 254 of major 195, through the shared
 * frontend table where nvidia.ko has that shape, else with its own table.
 */
#include <linux/cdev.h>
#include <linux/module.h>

#include "gws.h"
#include "nv.h"

static struct nv_sim_chrdev nvkms_dev;

static int nvkms_open(struct inode *inode, struct file *file)
{
	return gws_open(GWSIM_NODE_MODESET, inode, file);
}

static int nvkms_close(struct inode *inode, struct file *file)
{
	return gws_release(GWSIM_NODE_MODESET);
}

static long nvkms_unlocked_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return gws_ioctl(GWSIM_NODE_MODESET, GWSIM_OP_IOCTL, cmd, arg);
}

static int nvkms_mmap(struct file *file, struct vm_area_struct *vma)
{
	return -EPERM;	/* as the real one answers */
}

static struct file_operations nvkms_fops = {
	.owner = THIS_MODULE,
	.open = nvkms_open,
	.release = nvkms_close,
	.unlocked_ioctl = nvkms_unlocked_ioctl,
	.compat_ioctl = nvkms_unlocked_ioctl,
	.mmap = nvkms_mmap,
};

static long nvkms_module_ioctl(struct file *file, unsigned int cmd,
			       unsigned long arg, u32 op)
{
	return gws_ioctl(GWSIM_NODE_MODESET, op, cmd, arg);
}

static const struct nv_sim_module nvkms_module = {
	.owner = THIS_MODULE,
	.open = nvkms_open,
	.close = nvkms_close,
	.mmap = nvkms_mmap,
	.ioctl = nvkms_module_ioctl,
};

static int __init nvkms_init(void)
{
	int ret = nvidia_register_module(&nvkms_module);

	if (ret != -ENXIO)
		return ret;
	return nv_chrdev_add(&nvkms_dev, NV_MAJOR, NV_MINOR_MODESET, 1, "nvidia-modeset",
			     &nvkms_fops);
}

static void __exit nvkms_exit(void)
{
	nvidia_unregister_module(&nvkms_module);
	nv_chrdev_del(&nvkms_dev);
}

module_init(nvkms_init);
module_exit(nvkms_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Simulated NVIDIA driver for tests: modeset node");
