/* SPDX-License-Identifier: GPL-2.0 */
/* chardev.h - /dev/gpuwatch. Checks of arguments and privileges live here. */
#ifndef GW_CHARDEV_H
#define GW_CHARDEV_H

#include <linux/types.h>

int gw_chardev_init(void);
void gw_chardev_exit(void);

/* image_ioctl.c. @key: of the file's consumer, 0 when it has none. */
long gw_chardev_ioctl_image(u64 key, unsigned int cmd, void __user *arg);
long gw_chardev_ioctl_image_status(void __user *arg);

#endif
