// SPDX-License-Identifier: GPL-2.0
/* uprobe_register() returns the uprobe since 3c83a9ad0295 (v6.12). */
#include <linux/uprobes.h>

struct uprobe *gw_probe(struct inode *inode, struct uprobe_consumer *consumer);
struct uprobe *gw_probe(struct inode *inode, struct uprobe_consumer *consumer)
{
	return uprobe_register(inode, 0, 0, consumer);
}
