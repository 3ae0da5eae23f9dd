// SPDX-License-Identifier: GPL-2.0
/*
 * What every node does on open, ioctl, mmap and release: count, then answer
 * from the session, a test command, or the default. Also init and exit of
 * gwsim.ko and its control node.
 */
#include <linux/compat.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "gws.h"

static struct page *gws_page;	/* what every mapping shows */

int gws_open(u32 kind, struct inode *inode, struct file *file)
{
	struct gws_session *s;
	int ret = 0;

	gws_witness_count(kind, GWSIM_OP_OPEN);
	s = gws_session_find();
	if (s) {
		ret = gws_script_simple(s, GWSIM_OP_OPEN, kind);
		gws_session_put(s);
	}
	return ret;
}
EXPORT_SYMBOL_GPL(gws_open);

long gws_ioctl_slow(u32 kind, u32 op, unsigned int cmd, unsigned long arg)
{
	struct gws_seen seen = { .cmd = cmd, .hash = gws_witness_logs() };
	struct gws_session *s;
	long ret;

	if (in_compat_syscall())
		op = GWSIM_OP_COMPAT_IOCTL;
	gws_witness_count(kind, op);
	if (gws_builtin_is(cmd)) {
		ret = gws_builtin(cmd, arg, &seen);
	} else {
		s = gws_session_find();
		if (s) {
			ret = gws_script_ioctl(s, kind, cmd, arg, &seen);
			gws_session_put(s);
		} else {
			ret = gws_unscripted(cmd, arg, &seen);
		}
	}
	gws_witness_log(kind, op, ret, &seen);
	return ret;
}
EXPORT_SYMBOL_GPL(gws_ioctl_slow);

/* Mappings of any length cost nothing: all of their pages are this one. */
static vm_fault_t gws_vm_fault(struct vm_fault *vmf)
{
	get_page(gws_page);
	vmf->page = gws_page;
	return 0;
}

static const struct vm_operations_struct gws_vm_ops = {
	.fault = gws_vm_fault,
};

static int gws_mmap_answer(u32 kind)
{
	struct gws_session *s;
	int ret = 0;

	gws_witness_count(kind, GWSIM_OP_MMAP);
	s = gws_session_find();
	if (s) {
		ret = gws_script_simple(s, GWSIM_OP_MMAP, kind);
		gws_session_put(s);
	}
	return ret;
}

int gws_mmap(u32 kind, struct file *file, struct vm_area_struct *vma)
{
	int ret = gws_mmap_answer(kind);

	if (!ret)
		vma->vm_ops = &gws_vm_ops;
	return ret;
}
EXPORT_SYMBOL_GPL(gws_mmap);

#ifdef GWS_HAS_MMAP_PREPARE
int gws_mmap_prepare(u32 kind, struct vm_area_desc *desc)
{
	int ret = gws_mmap_answer(kind);

	if (!ret)
		desc->vm_ops = &gws_vm_ops;
	return ret;
}
EXPORT_SYMBOL_GPL(gws_mmap_prepare);
#endif

int gws_release(u32 kind)
{
	gws_witness_count(kind, GWSIM_OP_RELEASE);
	return 0;
}
EXPORT_SYMBOL_GPL(gws_release);

/* --- /dev/gwsim ----------------------------------------------------------- */

static long gws_ctl_totals(void __user *arg)
{
	struct gwsim_totals totals;

	gws_witness_totals(&totals);
	return copy_to_user(arg, &totals, sizeof(totals)) ? -EFAULT : 0;
}

static long gws_ctl_tasks(void __user *arg)
{
	struct gwsim_tasks req;
	long ret;

	if (copy_from_user(&req, arg, sizeof(req)))
		return -EFAULT;
	ret = gws_witness_tasks(&req);
	if (!ret && copy_to_user(arg, &req, sizeof(req)))
		ret = -EFAULT;
	return ret;
}

static long gws_ctl_log(void __user *arg)
{
	struct gwsim_log req;
	long ret;

	if (copy_from_user(&req, arg, sizeof(req)))
		return -EFAULT;
	ret = gws_witness_read_log(&req);
	if (!ret && copy_to_user(arg, &req, sizeof(req)))
		ret = -EFAULT;
	return ret;
}

static long gws_ctl_bind(struct file *file, void __user *arg)
{
	struct gwsim_bind bind;

	if (copy_from_user(&bind, arg, sizeof(bind)))
		return -EFAULT;
	return gws_session_bind(file, &bind);
}

static long gws_ctl_unbind(void __user *arg)
{
	struct gwsim_session_stat stat = {};
	long ret = gws_session_unbind(&stat);

	if (!ret && copy_to_user(arg, &stat, sizeof(stat)))
		ret = -EFAULT;
	return ret;
}

static long gws_ctl_ioctl(struct file *file, unsigned int cmd, unsigned long user_arg)
{
	void __user *arg = (void __user *)user_arg;

	switch (cmd) {
	case GWSIM_IOC_BIND:
		return gws_ctl_bind(file, arg);
	case GWSIM_IOC_UNBIND:
		return gws_ctl_unbind(arg);
	case GWSIM_IOC_TOTALS:
		return gws_ctl_totals(arg);
	case GWSIM_IOC_TASKS:
		return gws_ctl_tasks(arg);
	case GWSIM_IOC_LOG:
		return gws_ctl_log(arg);
	case GWSIM_IOC_RESET:
		gws_witness_reset();
		return 0;
	default:
		return -ENOTTY;
	}
}

static int gws_ctl_release(struct inode *inode, struct file *file)
{
	gws_session_drop_owner(file);
	return 0;
}

static const struct file_operations gws_ctl_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = gws_ctl_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.release = gws_ctl_release,
};

static struct miscdevice gws_ctl = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gwsim",
	.fops = &gws_ctl_fops,
	.mode = 0666,
};

static int __init gws_init(void)
{
	int ret = gws_witness_init();

	if (ret)
		return ret;
	gws_page = alloc_page(GFP_KERNEL | __GFP_ZERO);
	ret = -ENOMEM;
	if (!gws_page)
		goto err_witness;
	ret = misc_register(&gws_ctl);
	if (ret)
		goto err_page;
	return 0;

err_page:
	put_page(gws_page);
err_witness:
	gws_witness_exit();
	return ret;
}

static void __exit gws_exit(void)
{
	misc_deregister(&gws_ctl);
	put_page(gws_page);
	gws_witness_exit();
	rcu_barrier();	/* kfree_rcu() of the table */
}

module_init(gws_init);
module_exit(gws_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Simulated NVIDIA driver for tests: sessions, test commands, witness");
