// SPDX-License-Identifier: GPL-2.0
/*
 * main.c - order of start and stop, nothing else. The device node comes last
 * and goes first: who can open it finds everything behind it working. That no
 * NVIDIA driver is loaded is a state, not an error.
 */
#include <linux/module.h>

#include "chardev/chardev.h"
#include "hook/hook.h"
#include "image/image.h"
#include "netlink/netlink.h"
#include "record/record.h"

static int __init gw_init(void)
{
	int err;

	err = gw_record_init();
	if (err)
		return err;
	err = gw_hook_init();
	if (err)
		goto err_record_exit;
	err = gw_netlink_init();
	if (err)
		goto err_hook_exit;
	err = gw_chardev_init();
	if (err)
		goto err_netlink_exit;
	return 0;

err_netlink_exit:
	gw_netlink_exit();
err_hook_exit:
	gw_hook_exit();
err_record_exit:
	gw_record_exit();
	return err;
}

static void __exit gw_exit(void)
{
	gw_chardev_exit();
	gw_netlink_exit();
	gw_image_exit();
	gw_hook_exit();
	gw_record_exit();
}

module_init(gw_init);
module_exit(gw_exit);

MODULE_DESCRIPTION("Flight recorder for NVIDIA device nodes and GPU module images");
MODULE_AUTHOR("gpuwatch developers");
MODULE_VERSION(GW_VERSION);
MODULE_LICENSE("GPL");
