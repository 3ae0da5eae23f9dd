// SPDX-License-Identifier: GPL-2.0
/*
 * The small node families of nvidia.ko: capabilities, IMEX channels, NVSwitch
 * and NVLink. Each has a major and a table of its own; the first two have no
 * ioctl, the NVLink table is const, as in the real driver's sources.
 */
#include <linux/cdev.h>
#include <linux/module.h>

#include "gws.h"
#include "nv.h"

#define NVSWITCH_MINOR_CTL	255

static struct nv_sim_chrdev nv_caps_dev, nv_imex_dev, nv_switch_dev, nv_switch_ctl_dev,
	nv_link_dev;

static int nv_cap_drv_open(struct inode *inode, struct file *file)
{
	return gws_open(GWSIM_NODE_CAPS, inode, file);
}

static int nv_cap_drv_release(struct inode *inode, struct file *file)
{
	return gws_release(GWSIM_NODE_CAPS);
}

static struct file_operations g_nv_cap_drv_fops = {
	.owner = THIS_MODULE,
	.open = nv_cap_drv_open,
	.release = nv_cap_drv_release,
};

static int nv_caps_imex_open(struct inode *inode, struct file *file)
{
	return gws_open(GWSIM_NODE_IMEX, inode, file);
}

static int nv_caps_imex_release(struct inode *inode, struct file *file)
{
	return gws_release(GWSIM_NODE_IMEX);
}

static struct file_operations g_nv_caps_imex_fops = {
	.owner = THIS_MODULE,
	.open = nv_caps_imex_open,
	.release = nv_caps_imex_release,
};

static int nvswitch_device_open(struct inode *inode, struct file *file)
{
	return gws_open(GWSIM_NODE_NVSWITCH, inode, file);
}

static int nvswitch_device_release(struct inode *inode, struct file *file)
{
	return gws_release(GWSIM_NODE_NVSWITCH);
}

static long nvswitch_device_unlocked_ioctl(struct file *file, unsigned int cmd,
					   unsigned long arg)
{
	return gws_ioctl(GWSIM_NODE_NVSWITCH, GWSIM_OP_IOCTL, cmd, arg);
}

static long nvswitch_ctl_unlocked_ioctl(struct file *file, unsigned int cmd,
					unsigned long arg)
{
	/* Makes this a body of its own, which the compiler can't fold into the other. */
	if (iminor(file_inode(file)) != NVSWITCH_MINOR_CTL)
		return -ENODEV;
	return gws_ioctl(GWSIM_NODE_NVSWITCH, GWSIM_OP_IOCTL, cmd, arg);
}

static struct file_operations device_fops = {
	.owner = THIS_MODULE,
	.open = nvswitch_device_open,
	.release = nvswitch_device_release,
	.unlocked_ioctl = nvswitch_device_unlocked_ioctl,
	.compat_ioctl = nvswitch_device_unlocked_ioctl,
};

static struct file_operations ctl_fops = {
	.owner = THIS_MODULE,
	.open = nvswitch_device_open,
	.release = nvswitch_device_release,
	.unlocked_ioctl = nvswitch_ctl_unlocked_ioctl,
	.compat_ioctl = nvswitch_ctl_unlocked_ioctl,
};

static int nvlink_fops_open(struct inode *inode, struct file *file)
{
	return gws_open(GWSIM_NODE_NVLINK, inode, file);
}

static int nvlink_fops_release(struct inode *inode, struct file *file)
{
	return gws_release(GWSIM_NODE_NVLINK);
}

static long nvlink_fops_unlocked_ioctl(struct file *file, unsigned int cmd,
				       unsigned long arg)
{
	return gws_ioctl(GWSIM_NODE_NVLINK, GWSIM_OP_IOCTL, cmd, arg);
}

static const struct file_operations nvlink_fops = {
	.owner = THIS_MODULE,
	.open = nvlink_fops_open,
	.release = nvlink_fops_release,
	.unlocked_ioctl = nvlink_fops_unlocked_ioctl,
};

void nv_links_exit(void)
{
	nv_chrdev_del(&nv_link_dev);
	nv_chrdev_del(&nv_switch_ctl_dev);
	nv_chrdev_del(&nv_switch_dev);
	nv_chrdev_del(&nv_imex_dev);
	nv_chrdev_del(&nv_caps_dev);
}

int nv_links_init(void)
{
	unsigned int switch_major;
	int ret;

	ret = nv_chrdev_add(&nv_caps_dev, 0, 0, 64, "nvidia-caps", &g_nv_cap_drv_fops);
	if (ret)
		goto err_exit;
	ret = nv_chrdev_add(&nv_imex_dev, 0, 0, 64, "nvidia-caps-imex-channels",
			    &g_nv_caps_imex_fops);
	if (ret)
		goto err_exit;
	ret = nv_chrdev_add(&nv_switch_dev, 0, 0, 64, "nvidia-nvswitch", &device_fops);
	if (ret)
		goto err_exit;
	switch_major = MAJOR(nv_switch_dev.dev);
	ret = nv_chrdev_add(&nv_switch_ctl_dev, switch_major, NVSWITCH_MINOR_CTL, 1,
			    "nvidia-nvswitch", &ctl_fops);
	if (ret)
		goto err_exit;
	ret = nv_chrdev_add(&nv_link_dev, 0, 0, 1, "nvidia-nvlink", &nvlink_fops);
	if (ret)
		goto err_exit;
	return 0;

err_exit:
	nv_links_exit();	/* those never added are passed over */
	return ret;
}
