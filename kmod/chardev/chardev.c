// SPDX-License-Identifier: GPL-2.0
/*
 * chardev.c - /dev/gpuwatch: one consumer per open file. Every argument is
 * copied once and checked as a copy; on error nothing is written back.
 */
#include <linux/capability.h>
#include <linux/compat.h>
#include <linux/fs.h>
#include <linux/log2.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "chardev/chardev.h"
#include "hook/hook.h"
#include "image/image.h"
#include "record/consumer.h"
#include "record/plan.h"
#include "record/stage.h"
#include "ring/ring.h"

#define GW_DETACH_TIMEOUT_MAX_MS 60000

struct gw_open_file {
	struct mutex lock;			/* ioctls of this file */
	struct gw_consumer *consumer;		/* set once, by SETUP */
};

/* NULL before SETUP. */
static struct gw_consumer *gw_file_consumer(struct gw_open_file *open)
{
	return smp_load_acquire(&open->consumer); /* pairs with gw_ioctl_setup() */
}

static int gw_chardev_open(struct inode *inode, struct file *file)
{
	struct gw_open_file *open;

	/* In the first user namespace: a container with the node gets nothing. */
	if (!perfmon_capable())
		return -EPERM;
	open = kzalloc(sizeof(*open), GFP_KERNEL_ACCOUNT);
	if (!open)
		return -ENOMEM;
	mutex_init(&open->lock);
	file->private_data = open;
	return stream_open(inode, file);
}

static int gw_chardev_release(struct inode *inode, struct file *file)
{
	struct gw_open_file *open = file->private_data;

	if (open->consumer) {
		gw_consumer_disable(open->consumer);
		/* Off the list by now: nothing new is stored for it. */
		gw_image_consumer_gone(open->consumer->key);
		gw_consumer_free(open->consumer);
		gw_hook_consumer_gone();
	}
	kfree(open);
	return 0;
}

static long gw_ioctl_get_info(void __user *arg)
{
	struct gpuwatch_info info;

	gw_hook_info(&info);
	return copy_to_user(arg, &info, sizeof(info)) ? -EFAULT : 0;
}

static long gw_ioctl_setup(struct gw_open_file *open, void __user *arg)
{
	struct gw_consumer *consumer;
	struct gpuwatch_setup setup;

	if (copy_from_user(&setup, arg, sizeof(setup)))
		return -EFAULT;
	if (setup.abi_major != GPUWATCH_ABI_MAJOR)
		return -EPROTO;
	if (setup.flags & ~GPUWATCH_SETUP_HOLD_IMAGES || setup.mode > GPUWATCH_MODE_OVERWRITE ||
	    setup.ring_bytes < GW_RING_MIN_BYTES || setup.ring_bytes > GW_RING_MAX_BYTES ||
	    !is_power_of_2(setup.ring_bytes) || setup.watermark_bytes > setup.ring_bytes)
		return -EINVAL;
	if (open->consumer)
		return -EBUSY;
	consumer = gw_consumer_alloc(&setup);
	if (IS_ERR(consumer))
		return PTR_ERR(consumer);
	smp_store_release(&open->consumer, consumer); /* pairs with gw_file_consumer() */
	return 0;
}

static long gw_ioctl_set_filter(struct gw_open_file *open, void __user *arg)
{
	struct gpuwatch_filter filter;

	if (copy_from_user(&filter, arg, sizeof(filter)))
		return -EFAULT;
	if (filter.node_mask >> GPUWATCH_NODE_MAX || filter.cgroup_fd < -1 ||
	    filter.nr_pids > GPUWATCH_FILTER_PIDS)
		return -EINVAL;
	if (!open->consumer)
		return -ENXIO;
	return gw_consumer_set_filter(open->consumer, &filter);
}

static long gw_ioctl_enable(struct gw_open_file *open)
{
	bool was_enabled;
	int err;

	if (!open->consumer)
		return -ENXIO;
	was_enabled = open->consumer->enabled;
	err = gw_consumer_enable(open->consumer);
	if (err)
		return err;
	err = gw_hook_attach(false);
	if (err && !was_enabled)
		gw_consumer_disable(open->consumer);
	return err;
}

static long gw_ioctl_disable(struct gw_open_file *open)
{
	if (!open->consumer)
		return -ENXIO;
	gw_consumer_disable(open->consumer);
	gw_hook_consumer_gone();
	return 0;
}

static long gw_ioctl_get_stats(struct gw_open_file *open, void __user *arg)
{
	struct gpuwatch_stats stats = {};

	if (!open->consumer)
		return -ENXIO;
	gw_ring_stats(open->consumer->set, &stats);
	stats.lost[GPUWATCH_LOSS_PROBE_MISSED] = gw_kretprobe_missed();
	return copy_to_user(arg, &stats, sizeof(stats)) ? -EFAULT : 0;
}

static long gw_ioctl_detach(void __user *arg)
{
	struct gpuwatch_detach detach;
	int err;

	if (copy_from_user(&detach, arg, sizeof(detach)))
		return -EFAULT;
	if (detach.timeout_ms > GW_DETACH_TIMEOUT_MAX_MS || detach.in_flight)
		return -EINVAL;
	err = gw_hook_detach(detach.timeout_ms, &detach.in_flight);
	/* EBUSY is an answer too: in_flight says how many calls it is about. */
	if ((!err || err == -EBUSY) && copy_to_user(arg, &detach, sizeof(detach)))
		return -EFAULT;
	return err;
}

static long gw_ioctl_get_target(void __user *arg)
{
	struct gpuwatch_target target;
	int err;

	if (copy_from_user(&target, arg, sizeof(target)))
		return -EFAULT;
	err = gw_target_get(&target);
	if (!err && copy_to_user(arg, &target, sizeof(target)))
		err = -EFAULT;
	return err;
}

static long gw_ioctl_set_plan(void __user *arg)
{
	struct gpuwatch_plan plan;
	int err;

	if (copy_from_user(&plan, arg, sizeof(plan)))
		return -EFAULT;
	err = gw_plan_set(&plan);
	if (!err && copy_to_user(arg, &plan, sizeof(plan)))
		err = -EFAULT;
	return err;
}

static long gw_chardev_ioctl_consumer(struct gw_open_file *open, unsigned int cmd,
				      void __user *arg)
{
	switch (cmd) {
	case GPUWATCH_IOC_SETUP:
		return gw_ioctl_setup(open, arg);
	case GPUWATCH_IOC_SET_FILTER:
		return gw_ioctl_set_filter(open, arg);
	case GPUWATCH_IOC_ENABLE:
		return gw_ioctl_enable(open);
	case GPUWATCH_IOC_DISABLE:
		return gw_ioctl_disable(open);
	case GPUWATCH_IOC_GET_STATS:
		return gw_ioctl_get_stats(open, arg);
	default:
		return -ENOTTY;
	}
}

static long gw_chardev_ioctl_module(unsigned int cmd, void __user *arg)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	switch (cmd) {
	case GPUWATCH_IOC_ATTACH:
		return gw_hook_attach(true);
	case GPUWATCH_IOC_DETACH:
		return gw_ioctl_detach(arg);
	case GPUWATCH_IOC_GET_TARGET:
		return gw_ioctl_get_target(arg);
	default:
		return gw_ioctl_set_plan(arg);
	}
}

static long gw_chardev_ioctl(struct file *file, unsigned int cmd, unsigned long argument)
{
	struct gw_open_file *open = file->private_data;
	void __user *arg = (void __user *)argument;
	struct gw_consumer *consumer;
	long ret;

	switch (cmd) {
	case GPUWATCH_IOC_GET_INFO:
		return gw_ioctl_get_info(arg);
	case GPUWATCH_IOC_ATTACH:
	case GPUWATCH_IOC_DETACH:
	case GPUWATCH_IOC_GET_TARGET:
	case GPUWATCH_IOC_SET_PLAN:
		return gw_chardev_ioctl_module(cmd, arg);
	/* Without the file's lock: setting a probe may wait for others' memory locks. */
	case GPUWATCH_IOC_ADD_PROBE:
	case GPUWATCH_IOC_REMOVE_PROBE:
	case GPUWATCH_IOC_GET_IMAGE:
	case GPUWATCH_IOC_DROP_IMAGE:
		consumer = gw_file_consumer(open);
		return gw_chardev_ioctl_image(consumer ? consumer->key : 0, cmd, arg);
	case GPUWATCH_IOC_GET_IMAGE_STATUS:
		return gw_chardev_ioctl_image_status(arg);
	}
	if (mutex_lock_interruptible(&open->lock))
		return -ERESTARTSYS;
	ret = gw_chardev_ioctl_consumer(open, cmd, arg);
	mutex_unlock(&open->lock);
	return ret;
}

static int gw_chardev_mmap(struct file *file, struct vm_area_struct *vma)
{
	struct gw_consumer *consumer = gw_file_consumer(file->private_data);

	return consumer ? gw_ring_mmap(consumer->set, vma) : -ENXIO;
}

static ssize_t gw_chardev_read(struct file *file, char __user *buf, size_t bytes, loff_t *pos)
{
	struct gw_consumer *consumer = gw_file_consumer(file->private_data);

	if (!consumer)
		return -ENXIO;
	return gw_ring_read(consumer->set, buf, bytes, file->f_flags & O_NONBLOCK);
}

static __poll_t gw_chardev_poll(struct file *file, poll_table *table)
{
	struct gw_consumer *consumer = gw_file_consumer(file->private_data);

	if (!consumer)
		return EPOLLERR;
	poll_wait(file, &consumer->set->wait, table);
	return gw_ring_readable(consumer->set) ? EPOLLIN | EPOLLRDNORM : 0;
}

static const struct file_operations gw_chardev_fops = {
	.owner = THIS_MODULE,
	.open = gw_chardev_open,
	.release = gw_chardev_release,
	.unlocked_ioctl = gw_chardev_ioctl,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = gw_chardev_mmap,
	.read = gw_chardev_read,
	.poll = gw_chardev_poll,
};

static struct miscdevice gw_misc = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "gpuwatch",
	.fops = &gw_chardev_fops,
	.mode = 0660, /* a reader's position is a shared writable page */
};

int gw_chardev_init(void)
{
	return misc_register(&gw_misc);
}

void gw_chardev_exit(void)
{
	misc_deregister(&gw_misc);
}
