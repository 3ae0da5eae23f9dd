// SPDX-License-Identifier: GPL-2.0
/*
 * The shape of the driver's releases up to 535: one file_operations for all
 * minors of major 195, which hands each call to the module that owns the
 * minor, nvidia.ko itself or nvidia-modeset.ko.
 */
#include <linux/cdev.h>
#include <linux/module.h>
#include <linux/rwsem.h>

#include "gws.h"
#include "nv.h"

static DECLARE_RWSEM(nv_lock);	/* nv_modeset */
static const struct nv_sim_module *nv_own, *nv_modeset;
static struct nv_sim_chrdev nv_frontend_dev;

/* After open the file's own reference keeps the module: no lock needed. */
static const struct nv_sim_module *nv_module_of(struct file *file)
{
	return file->private_data;
}

static int nv_frontend_open(struct inode *inode, struct file *file)
{
	const struct nv_sim_module *m;
	int ret = -ENODEV;

	down_read(&nv_lock);
	m = iminor(inode) == NV_MINOR_MODESET ? nv_modeset : nv_own;
	if (m && !try_module_get(m->owner))
		m = NULL;
	up_read(&nv_lock);
	if (!m)
		return ret;
	file->private_data = (void *)m;
	ret = m->open(inode, file);
	if (ret)
		module_put(m->owner);
	return ret;
}

static int nv_frontend_close(struct inode *inode, struct file *file)
{
	const struct nv_sim_module *m = nv_module_of(file);
	int ret = m->close(inode, file);

	module_put(m->owner);
	return ret;
}

static long nv_frontend_unlocked_ioctl(struct file *file, unsigned int cmd,
				       unsigned long arg)
{
	return nv_module_of(file)->ioctl(file, cmd, arg, GWSIM_OP_IOCTL);
}

static long nv_frontend_compat_ioctl(struct file *file, unsigned int cmd,
				     unsigned long arg)
{
	return nv_module_of(file)->ioctl(file, cmd, arg, GWSIM_OP_COMPAT_IOCTL);
}

static int nv_frontend_mmap(struct file *file, struct vm_area_struct *vma)
{
	return nv_module_of(file)->mmap(file, vma);
}

static struct file_operations nv_frontend_fops = {
	.owner = THIS_MODULE,
	.open = nv_frontend_open,
	.release = nv_frontend_close,
	.unlocked_ioctl = nv_frontend_unlocked_ioctl,
	.compat_ioctl = nv_frontend_compat_ioctl,
	.mmap = nv_frontend_mmap,
};

/* The answer says which shape is loaded. */
int nvidia_register_module(const struct nv_sim_module *module)
{
	int ret = 0;

	if (!nv_own)
		return -ENXIO;
	down_write(&nv_lock);
	if (nv_modeset)
		ret = -EBUSY;
	else
		nv_modeset = module;
	up_write(&nv_lock);
	return ret;
}
EXPORT_SYMBOL_GPL(nvidia_register_module);

void nvidia_unregister_module(const struct nv_sim_module *module)
{
	down_write(&nv_lock);
	if (nv_modeset == module)
		nv_modeset = NULL;
	up_write(&nv_lock);
}
EXPORT_SYMBOL_GPL(nvidia_unregister_module);

int nv_frontend_init(const struct nv_sim_module *own)
{
	if (!nvidia_compat_is_separate())
		nv_frontend_fops.compat_ioctl = nv_frontend_unlocked_ioctl;
	nv_own = own;
	return nv_chrdev_add(&nv_frontend_dev, NV_MAJOR, 0, 256, "nvidia-frontend",
			     &nv_frontend_fops);
}

void nv_frontend_exit(void)
{
	nv_chrdev_del(&nv_frontend_dev);
}
