// SPDX-License-Identifier: GPL-2.0
/*
 * The test commands of gwsim.h, and the answer to RM_CONTROL and RM_ALLOC
 * outside of any session. No state is kept between calls.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "gws.h"

#define GWS_STACK_BYTES		256

#define GWS_NR_RM_CONTROL	0x2a
#define GWS_NR_RM_ALLOC		0x2b
#define GWS_STATUS_INVALID	0x1f	/* NV_ERR_INVALID_ARGUMENT */

bool gws_builtin_is(unsigned int cmd)
{
	return _IOC_TYPE(cmd) == GWSIM_MAGIC;
}

static void gws_see(struct gws_seen *seen, const u8 *buf, u32 len, bool out)
{
	if (!seen->hash)
		return;
	if (out) {
		seen->out_len = len;
		seen->out_hash = gwsim_hash(buf, len);
	} else {
		seen->in_len = len;
		seen->in_hash = gwsim_hash(buf, len);
	}
}

static void gws_see_nested(struct gws_seen *seen, const u8 *buf, u32 len, bool out)
{
	if (!seen->hash)
		return;
	if (out) {
		seen->nested_out_len = len;
		seen->nested_out_hash = gwsim_hash(buf, len);
	} else {
		seen->nested_in_len = len;
		seen->nested_in_hash = gwsim_hash(buf, len);
	}
}

static long gws_copy(u8 *buf, u32 len, void __user *arg, bool transform,
		     struct gws_seen *seen)
{
	if (copy_from_user(buf, arg, len))
		return -EFAULT;
	gws_see(seen, buf, len, false);
	if (transform)
		gwsim_transform(buf, len);
	if (copy_to_user(arg, buf, len))
		return -EFAULT;
	gws_see(seen, buf, len, true);
	return 0;
}

static long gws_copy_any(u32 len, void __user *arg, bool transform,
			 struct gws_seen *seen)
{
	u8 small[GWS_STACK_BYTES], *buf = small;
	long ret;

	if (!len || len > GWSIM_COPY_MAX)
		return -EINVAL;
	if (len > sizeof(small)) {
		buf = kmalloc(len, GFP_KERNEL);
		if (!buf)
			return -ENOMEM;
	}
	ret = gws_copy(buf, len, arg, transform, seen);
	if (buf != small)
		kfree(buf);
	return ret;
}

static long gws_block(void __user *arg, struct gws_seen *seen)
{
	struct gwsim_block b;
	unsigned long left;

	if (copy_from_user(&b, arg, sizeof(b)))
		return -EFAULT;
	gws_see(seen, (u8 *)&b, sizeof(b), false);
	if (b.ms > 120000)
		return -EINVAL;
	left = msecs_to_jiffies(b.ms);
	if (!b.killable) {
		while (left)
			left = schedule_timeout_uninterruptible(left);
		return 0;
	}
	while (left && !fatal_signal_pending(current))
		left = schedule_timeout_killable(left);
	return left ? -EINTR : 0;
}

static long gws_fault(void __user *arg, struct gws_seen *seen)
{
	struct gwsim_fault f;
	long ret = 0;
	u8 *buf;

	if (copy_from_user(&f, arg, sizeof(f)))
		return -EFAULT;
	gws_see(seen, (u8 *)&f, sizeof(f), false);
	if (f.len > GWSIM_COPY_MAX)
		return -EINVAL;
	buf = kmalloc(max_t(u64, f.len, 1), GFP_KERNEL);
	if (!buf)
		return -ENOMEM;
	if (copy_from_user(buf, u64_to_user_ptr(f.addr), f.len))
		ret = -EFAULT;
	kfree(buf);
	return ret;
}

static long gws_change(void __user *arg, struct gws_seen *seen)
{
	struct gwsim_change __user *uc = arg;
	struct gwsim_change c;
	unsigned long end;
	u32 go;

	if (copy_from_user(&c, uc, sizeof(c)))
		return -EFAULT;
	gws_see(seen, (u8 *)&c, sizeof(c), false);
	if (c.timeout_ms > 60000)
		return -EINVAL;
	end = jiffies + msecs_to_jiffies(c.timeout_ms);
	if (put_user(1, &uc->entered))
		return -EFAULT;
	do {
		if (get_user(go, &uc->go))
			return -EFAULT;
		if (go)
			return 0;
		usleep_range(100, 200);
	} while (time_before(jiffies, end) && !fatal_signal_pending(current));
	return -ETIMEDOUT;
}

static long gws_return(void __user *arg, struct gws_seen *seen)
{
	s64 value;

	if (copy_from_user(&value, arg, sizeof(value)))
		return -EFAULT;
	gws_see(seen, (u8 *)&value, sizeof(value), false);
	return value;
}

long gws_builtin(unsigned int cmd, unsigned long user_arg, struct gws_seen *seen)
{
	void __user *arg = (void __user *)user_arg;
	u32 size = _IOC_SIZE(cmd);

	if (cmd == GWSIM_TRANSFORM(size))
		return gws_copy_any(size, arg, true, seen);
	if (cmd == GWSIM_ECHO(size))
		return gws_copy_any(size, arg, false, seen);
	switch (cmd) {
	case GWSIM_NOP:
		return 0;
	case GWSIM_BLOCK:
		return gws_block(arg, seen);
	case GWSIM_FAULT:
		return gws_fault(arg, seen);
	case GWSIM_CHANGE:
		return gws_change(arg, seen);
	case GWSIM_RETURN:
		return gws_return(arg, seen);
	default:
		return -ENOTTY;
	}
}

/* Where the calls that follow a pointer keep it. */
struct gws_rm_layout {
	u32 size, ptr, len, status;
};

static const struct gws_rm_layout gws_rm_control = { 32, 16, 24, 28 };
static const struct gws_rm_layout gws_rm_alloc = { 48, 16, 32, 40 };

static long gws_rm_nested(u8 *arg, const struct gws_rm_layout *at,
			  struct gws_seen *seen)
{
	u32 len, status = 0;
	long ret = 0;
	u64 ptr;
	u8 *buf;

	memcpy(&ptr, arg + at->ptr, sizeof(ptr));
	memcpy(&len, arg + at->len, sizeof(len));
	if (len > GWSIM_COPY_MAX) {
		status = GWS_STATUS_INVALID;
	} else if (len && ptr) {
		buf = kmalloc(len, GFP_KERNEL);
		if (!buf)
			return -ENOMEM;
		if (copy_from_user(buf, u64_to_user_ptr(ptr), len)) {
			ret = -EFAULT;
		} else {
			gws_see_nested(seen, buf, len, false);
			gwsim_transform(buf, len);
			if (copy_to_user(u64_to_user_ptr(ptr), buf, len))
				ret = -EFAULT;
			else
				gws_see_nested(seen, buf, len, true);
		}
		kfree(buf);
	}
	memcpy(arg + at->status, &status, sizeof(status));
	return ret;
}

static long gws_rm(u32 nr, u32 size, void __user *arg, struct gws_seen *seen)
{
	const struct gws_rm_layout *at;
	u8 buf[48];
	long ret;

	at = nr == GWS_NR_RM_CONTROL ? &gws_rm_control :
	     nr == GWS_NR_RM_ALLOC ? &gws_rm_alloc : NULL;
	if (!at || size != at->size)
		return -EINVAL;
	if (copy_from_user(buf, arg, size))
		return -EFAULT;
	gws_see(seen, buf, size, false);
	ret = gws_rm_nested(buf, at, seen);
	if (ret)
		return ret;
	if (copy_to_user(arg, buf, size))
		return -EFAULT;
	gws_see(seen, buf, size, true);
	return 0;
}

/* The real driver unwraps XFER before it looks at the command: so here. */
long gws_unscripted(unsigned int cmd, unsigned long user_arg, struct gws_seen *seen)
{
	void __user *arg = (void __user *)user_arg;
	struct gws_xfer xfer;

	if (_IOC_TYPE(cmd) != 'F')
		return -EINVAL;
	if (!GWS_IS_XFER(cmd))
		return gws_rm(_IOC_NR(cmd), _IOC_SIZE(cmd), arg, seen);
	if (copy_from_user(&xfer, arg, sizeof(xfer)))
		return -EFAULT;
	seen->xfer = 1;
	seen->cmd = xfer.cmd;
	if (!xfer.ptr || !xfer.size || xfer.size > (1 << 20))
		return -EINVAL;
	return gws_rm(xfer.cmd, xfer.size, u64_to_user_ptr(xfer.ptr), seen);
}
