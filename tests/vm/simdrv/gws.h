/* SPDX-License-Identifier: GPL-2.0 */
/*
 * gws.h - what gwsim.ko (sessions, test commands, witness) offers to the
 * modules that register the nodes. The nodes' functions stay in those modules,
 * as an observer finds them there; here is only what they do.
 */
#ifndef _GWS_H
#define _GWS_H

#include <linux/fs.h>
#include <linux/types.h>
#include <linux/version.h>

#include "gwsim.h"

/* c84bf6dd2b83 (v6.16) */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 16, 0)
#define GWS_HAS_MMAP_PREPARE
struct vm_area_desc;
int gws_mmap_prepare(u32 kind, struct vm_area_desc *desc);
#endif

struct vm_area_struct;

/* nodes.c */
int gws_open(u32 kind, struct inode *inode, struct file *file);
long gws_ioctl_slow(u32 kind, u32 op, unsigned int cmd, unsigned long arg);
int gws_mmap(u32 kind, struct file *file, struct vm_area_struct *vma);
int gws_release(u32 kind);

extern unsigned int gws_witness;

/*
 * @op: GWSIM_OP_COMPAT_IOCTL in a handler of its own for 32-bit calls; one that
 * serves both passes GWSIM_OP_IOCTL, and the task tells which it is.
 * GWSIM_NOP is answered before anything else when nobody counts, so that a
 * bench measures the hook and not this driver.
 */
static __always_inline long gws_ioctl(u32 kind, u32 op, unsigned int cmd,
				      unsigned long arg)
{
	if (cmd == GWSIM_NOP && !READ_ONCE(gws_witness))
		return 0;
	return gws_ioctl_slow(kind, op, cmd, arg);
}

/* --- inside gwsim.ko ------------------------------------------------------ */

/* Argument bytes of a call as the driver saw them, for the log. */
struct gws_seen {
	u32 in_len, out_len, nested_in_len, nested_out_len;
	u64 in_hash, out_hash, nested_in_hash, nested_out_hash;
	u32 cmd;
	u8 xfer;
	bool hash;	/* somebody wants the hashes */
};

/* The wrapper of NV_ESC_IOCTL_XFER_CMD. */
struct gws_xfer {
	u32 cmd;
	u32 size;
	u64 ptr;
};

#define GWS_XFER_NR	211
#define GWS_IS_XFER(cmd) \
	(_IOC_NR(cmd) == GWS_XFER_NR && _IOC_TYPE(cmd) == 'F' && \
	 _IOC_SIZE(cmd) == sizeof(struct gws_xfer))

/* builtin.c */
bool gws_builtin_is(unsigned int cmd);
long gws_builtin(unsigned int cmd, unsigned long arg, struct gws_seen *seen);
long gws_unscripted(unsigned int cmd, unsigned long arg, struct gws_seen *seen);

/* session.c */
struct gws_session;
struct gws_session *gws_session_find(void);
void gws_session_put(struct gws_session *s);
const struct gwsim_call *gws_session_next(struct gws_session *s);
void gws_session_result(struct gws_session *s, bool matched);
long gws_session_bind(struct file *owner, const struct gwsim_bind *bind);
long gws_session_unbind(struct gwsim_session_stat *stat);
void gws_session_drop_owner(struct file *owner);
u64 gws_session_mismatches(bool clear);

/* script.c */
int gws_script_check(const void *script, size_t bytes, u64 *calls);
long gws_script_ioctl(struct gws_session *s, u32 kind, unsigned int cmd,
		      unsigned long arg, struct gws_seen *seen);
int gws_script_simple(struct gws_session *s, u32 op, u32 kind);

/* witness.c */
int gws_witness_init(void);
void gws_witness_exit(void);
void gws_witness_count(u32 kind, u32 op);
void gws_witness_log(u32 kind, u32 op, long ret, const struct gws_seen *seen);
bool gws_witness_logs(void);
void gws_witness_totals(struct gwsim_totals *totals);
long gws_witness_tasks(struct gwsim_tasks *req);
long gws_witness_read_log(struct gwsim_log *req);
void gws_witness_reset(void);

#endif /* _GWS_H */
