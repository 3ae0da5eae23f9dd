// SPDX-License-Identifier: GPL-2.0
/* Handlers of uprobes get a word of the consumer's since da09a9e0c3ea (v6.13). */
#include <linux/uprobes.h>

static int gw_probe(struct uprobe_consumer *consumer, struct pt_regs *regs, __u64 *data)
{
	return 0;
}

const struct uprobe_consumer gw_consumer = { .handler = gw_probe };
