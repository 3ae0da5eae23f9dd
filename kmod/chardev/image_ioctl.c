// SPDX-License-Identifier: GPL-2.0
/*
 * image_ioctl.c - ioctls about module images. Arguments are copied once and
 * checked as a copy; on error nothing is written back, and no descriptor is
 * left behind.
 */
#include <linux/capability.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/uaccess.h>

#include "chardev/chardev.h"
#include "image/image.h"

static long gw_ioctl_add_probe(u64 key, void __user *arg)
{
	struct gpuwatch_probe probe;
	int err;

	if (copy_from_user(&probe, arg, sizeof(probe)))
		return -EFAULT;
	err = gw_probe_add(key, &probe);
	if (err)
		return err;
	if (copy_to_user(arg, &probe, sizeof(probe))) {
		struct gpuwatch_probe_ref ref = { .id = probe.id };

		gw_probe_remove(key, &ref);
		return -EFAULT;
	}
	return 0;
}

static long gw_ioctl_remove_probe(u64 key, void __user *arg)
{
	struct gpuwatch_probe_ref ref;
	int err;

	if (copy_from_user(&ref, arg, sizeof(ref)))
		return -EFAULT;
	if (ref.pad || ref.hits)
		return -EINVAL;
	err = gw_probe_remove(key, &ref);
	if (!err && copy_to_user(arg, &ref, sizeof(ref)))
		err = -EFAULT;
	return err;
}

static long gw_ioctl_get_image(u64 key, void __user *arg)
{
	struct gpuwatch_image image;
	struct gw_blob *blob;
	struct file *file;
	int fd, err;

	if (copy_from_user(&image, arg, sizeof(image)))
		return -EFAULT;
	if (image.bytes || image.fd || image.flags & ~GPUWATCH_IMAGE_DROP)
		return -EINVAL;
	blob = gw_blob_get(image.id);
	if (!blob)
		return -ENOENT;
	fd = get_unused_fd_flags(O_CLOEXEC);
	if (fd < 0) {
		err = fd;
		goto out_put_blob;
	}
	file = gw_blob_file(blob);
	if (IS_ERR(file)) {
		err = PTR_ERR(file);
		goto err_put_fd;
	}
	image.bytes = blob->bytes;
	image.fd = fd;
	err = -EFAULT;
	if (copy_to_user(arg, &image, sizeof(image)))
		goto err_put_file;
	/* Who does not hold it has nothing to give up. */
	if (image.flags & GPUWATCH_IMAGE_DROP)
		gw_blob_drop(image.id, key);
	fd_install(fd, file);
	err = 0;
	goto out_put_blob;

err_put_file:
	fput(file);
err_put_fd:
	put_unused_fd(fd);
out_put_blob:
	gw_blob_put(blob);
	return err;
}

static long gw_ioctl_drop_image(u64 key, void __user *arg)
{
	struct gpuwatch_image image;

	if (copy_from_user(&image, arg, sizeof(image)))
		return -EFAULT;
	if (image.bytes || image.fd || image.flags)
		return -EINVAL;
	return gw_blob_drop(image.id, key);
}

long gw_chardev_ioctl_image(u64 key, unsigned int cmd, void __user *arg)
{
	if (!capable(CAP_SYS_ADMIN))
		return -EPERM;
	if (!key)
		return -ENXIO;
	switch (cmd) {
	case GPUWATCH_IOC_ADD_PROBE:
		return gw_ioctl_add_probe(key, arg);
	case GPUWATCH_IOC_REMOVE_PROBE:
		return gw_ioctl_remove_probe(key, arg);
	case GPUWATCH_IOC_GET_IMAGE:
		return gw_ioctl_get_image(key, arg);
	default:
		return gw_ioctl_drop_image(key, arg);
	}
}

long gw_chardev_ioctl_image_status(void __user *arg)
{
	struct gpuwatch_image_status status = {};

	gw_image_status(&status);
	return copy_to_user(arg, &status, sizeof(status)) ? -EFAULT : 0;
}
