// SPDX-License-Identifier: GPL-2.0
/*
 * The simulated nvidia.ko: nvidiactl and nvidiaN, registered as the driver's
 * releases up to 535 do (shape=frontend) or as those from 550 on do
 * (shape=split), and /proc/driver/nvidia/version.
 */
#include <linux/cdev.h>
#include <linux/module.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>

#include "gws.h"
#include "nv.h"

static char *shape = "split";
module_param(shape, charp, 0444);
MODULE_PARM_DESC(shape, "frontend: one table for all of major 195; split: separate tables");

static char *compat = "";
module_param(compat, charp, 0444);
MODULE_PARM_DESC(compat, "same or separate: handler of 32-bit ioctls; default as the shape has it");

static char *version = "580.159.04";
module_param(version, charp, 0444);
MODULE_PARM_DESC(version, "driver release to show in /proc");

static bool frontend;
static struct nv_sim_chrdev nv_gpu_dev, nv_ctl_dev;
static struct proc_dir_entry *nv_proc;

static u32 nv_kind(struct inode *inode)
{
	return iminor(inode) == NV_MINOR_CTL ? GWSIM_NODE_CTL : GWSIM_NODE_GPU;
}

static int nvidia_open(struct inode *inode, struct file *file)
{
	return gws_open(nv_kind(inode), inode, file);
}

static int nvidia_close(struct inode *inode, struct file *file)
{
	return gws_release(nv_kind(inode));
}

static long nvidia_unlocked_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return gws_ioctl(nv_kind(file_inode(file)), GWSIM_OP_IOCTL, cmd, arg);
}

static long nvidia_compat_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	return gws_ioctl(nv_kind(file_inode(file)), GWSIM_OP_COMPAT_IOCTL, cmd, arg);
}

static int nvidia_mmap(struct file *file, struct vm_area_struct *vma)
{
	return gws_mmap(nv_kind(file_inode(file)), file, vma);
}

/* Writable, as in the real driver's sources. */
static struct file_operations nvidia_fops = {
	.owner = THIS_MODULE,
	.open = nvidia_open,
	.release = nvidia_close,
	.unlocked_ioctl = nvidia_unlocked_ioctl,
	.compat_ioctl = nvidia_unlocked_ioctl,
	.mmap = nvidia_mmap,
};

static long nvidia_module_ioctl(struct file *file, unsigned int cmd,
				unsigned long arg, u32 op)
{
	return gws_ioctl(nv_kind(file_inode(file)), op, cmd, arg);
}

static const struct nv_sim_module nvidia_module = {
	.owner = THIS_MODULE,
	.open = nvidia_open,
	.close = nvidia_close,
	.mmap = nvidia_mmap,
	.ioctl = nvidia_module_ioctl,
};

bool nvidia_compat_is_separate(void)
{
	return *compat ? !strcmp(compat, "separate") : frontend;
}
EXPORT_SYMBOL_GPL(nvidia_compat_is_separate);

int nv_chrdev_add(struct nv_sim_chrdev *c, unsigned int major, unsigned int minor,
		  unsigned int count, const char *name,
		  const struct file_operations *fops)
{
	int ret;

	c->dev = MKDEV(major, minor);
	c->count = count;
	if (major)
		ret = register_chrdev_region(c->dev, count, name);
	else
		ret = alloc_chrdev_region(&c->dev, minor, count, name);
	if (ret)
		return ret;
	c->cdev = cdev_alloc();
	ret = -ENOMEM;
	if (!c->cdev)
		goto err_region;
	c->cdev->ops = fops;
	c->cdev->owner = fops->owner;
	ret = cdev_add(c->cdev, c->dev, count);
	if (ret)
		goto err_cdev;
	return 0;

err_cdev:
	kobject_put(&c->cdev->kobj);
err_region:
	unregister_chrdev_region(c->dev, count);
	c->cdev = NULL;
	return ret;
}
EXPORT_SYMBOL_GPL(nv_chrdev_add);

/* Does nothing for a device that was never added. */
void nv_chrdev_del(struct nv_sim_chrdev *c)
{
	if (!c->cdev)
		return;
	cdev_del(c->cdev);
	unregister_chrdev_region(c->dev, c->count);
	c->cdev = NULL;
}
EXPORT_SYMBOL_GPL(nv_chrdev_del);

static int nv_split_init(void)
{
	int ret;

	if (nvidia_compat_is_separate())
		nvidia_fops.compat_ioctl = nvidia_compat_ioctl;
	ret = nv_chrdev_add(&nv_gpu_dev, NV_MAJOR, 0, NV_MINOR_GPU_MAX + 1,
			    "nvidia", &nvidia_fops);
	if (ret)
		return ret;
	ret = nv_chrdev_add(&nv_ctl_dev, NV_MAJOR, NV_MINOR_CTL, 1, "nvidiactl", &nvidia_fops);
	if (ret)
		nv_chrdev_del(&nv_gpu_dev);
	return ret;
}

static void nv_split_exit(void)
{
	nv_chrdev_del(&nv_ctl_dev);
	nv_chrdev_del(&nv_gpu_dev);
}

static int nv_version_show(struct seq_file *m, void *v)
{
	seq_printf(m, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Simulated\n",
		   version);
	return 0;
}

static int __init nv_init(void)
{
	int ret;

	if (strcmp(shape, "frontend") && strcmp(shape, "split"))
		return -EINVAL;
	frontend = !strcmp(shape, "frontend");
	ret = frontend ? nv_frontend_init(&nvidia_module) : nv_split_init();
	if (ret)
		return ret;
	ret = nv_links_init();
	if (ret)
		goto err_nodes;
	ret = -ENOMEM;
	nv_proc = proc_mkdir("driver/nvidia", NULL);
	if (!nv_proc || !proc_create_single("version", 0444, nv_proc, nv_version_show))
		goto err_links;
	return 0;

err_links:
	proc_remove(nv_proc);
	nv_links_exit();
err_nodes:
	if (frontend)
		nv_frontend_exit();
	else
		nv_split_exit();
	return ret;
}

static void __exit nv_exit(void)
{
	proc_remove(nv_proc);
	nv_links_exit();
	if (frontend)
		nv_frontend_exit();
	else
		nv_split_exit();
}

module_init(nv_init);
module_exit(nv_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Simulated NVIDIA driver for tests: nvidiactl, nvidiaN and small nodes");
