// SPDX-License-Identifier: GPL-2.0
/* Proves that the compiler and the headers can build a module at all. */
#include <linux/module.h>

static int __init gw_probe_init(void)
{
	return 0;
}
module_init(gw_probe_init);
MODULE_LICENSE("GPL");
