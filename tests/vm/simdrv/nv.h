/* SPDX-License-Identifier: GPL-2.0 */
/*
 * nv.h - inside the simulated nvidia.ko: which files register which nodes, and
 * the table through which nvidia-modeset joins the shared frontend.
 */
#ifndef _NV_H
#define _NV_H

#include <linux/fs.h>

#define NV_MAJOR		195
#define NV_MINOR_CTL		255
#define NV_MINOR_MODESET	254
#define NV_MINOR_GPU_MAX	247

/* One of the modules behind the shared table of the frontend shape. */
struct nv_sim_module {
	struct module *owner;
	int (*open)(struct inode *inode, struct file *file);
	int (*close)(struct inode *inode, struct file *file);
	int (*mmap)(struct file *file, struct vm_area_struct *vma);
	long (*ioctl)(struct file *file, unsigned int cmd, unsigned long arg, u32 op);
};

/* Exported to nvidia-modeset.ko; -ENXIO in the split shape. */
int nvidia_register_module(const struct nv_sim_module *module);
void nvidia_unregister_module(const struct nv_sim_module *module);
bool nvidia_compat_is_separate(void);

/* A character device with its own range of minors. */
struct nv_sim_chrdev {
	dev_t dev;
	unsigned int count;
	struct cdev *cdev;
};

int nv_chrdev_add(struct nv_sim_chrdev *c, unsigned int major, unsigned int minor,
		  unsigned int count, const char *name,
		  const struct file_operations *fops);
void nv_chrdev_del(struct nv_sim_chrdev *c);

int nv_frontend_init(const struct nv_sim_module *own);
void nv_frontend_exit(void);
int nv_links_init(void);
void nv_links_exit(void);

#endif /* _NV_H */
