/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Setting breakpoints in files. Since 3c83a9ad0295 (v6.12) a probe is named by
 * a handle, and taking many out needs to wait only once; since da09a9e0c3ea
 * (v6.13) handlers get one more argument.
 */
#ifndef GW_COMPAT_UPROBE_H
#define GW_COMPAT_UPROBE_H

#include <linux/err.h>
#include <linux/uprobes.h>

#ifdef HAS_UPROBE_HANDLER_DATA
#define GW_UPROBE_HANDLER(name) \
	int name(struct uprobe_consumer *self, struct pt_regs *regs, __u64 *data)
#else
#define GW_UPROBE_HANDLER(name) \
	int name(struct uprobe_consumer *self, struct pt_regs *regs)
#endif

struct gw_uprobe {
	struct uprobe_consumer consumer;
	struct inode *inode;
	loff_t offset;
	struct uprobe *handle;		/* of newer kernels */
};

static inline int gw_uprobe_set(struct gw_uprobe *probe)
{
#ifdef HAS_UPROBE_HANDLE
	probe->handle = uprobe_register(probe->inode, probe->offset, 0, &probe->consumer);
	return PTR_ERR_OR_ZERO(probe->handle);
#else
	return uprobe_register(probe->inode, probe->offset, &probe->consumer);
#endif
}

/* No new hits; gw_uprobe_clear_wait() before @probe may go. */
static inline void gw_uprobe_clear(struct gw_uprobe *probe)
{
#ifdef HAS_UPROBE_HANDLE
	uprobe_unregister_nosync(probe->handle, &probe->consumer);
#else
	uprobe_unregister(probe->inode, probe->offset, &probe->consumer);
#endif
}

/* Waits until no handler of a probe cleared before is running. */
static inline void gw_uprobe_clear_wait(void)
{
#ifdef HAS_UPROBE_HANDLE
	uprobe_unregister_sync();
#endif
}

#endif
