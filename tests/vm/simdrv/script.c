// SPDX-License-Identifier: GPL-2.0
/*
 * Answers a call from a session's script: compares what the caller's memory
 * holds with what was recorded, puts the recorded output there, returns the
 * recorded value. A call that is not the expected next one gets -EINVAL.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "gws.h"

#define GWS_PAD8(n)	(((size_t)(n) + 7) & ~(size_t)7)

static const u8 *gws_part_in(const struct gwsim_part *p)
{
	return (const u8 *)(p + 1);
}

static const u8 *gws_part_out(const struct gwsim_part *p)
{
	return gws_part_in(p) + GWS_PAD8(p->in_len);
}

static size_t gws_part_bytes(const struct gwsim_part *p)
{
	return sizeof(*p) + GWS_PAD8(p->in_len) + GWS_PAD8(p->out_len);
}

static const struct gwsim_part *gws_part_next(const struct gwsim_part *p)
{
	return (const void *)p + gws_part_bytes(p);
}

static bool gws_call_ok(const struct gwsim_call *call, size_t left)
{
	const struct gwsim_part *p = (const void *)(call + 1);
	u32 i, arg_len = 0;

	if (left < sizeof(*call) || call->len < sizeof(*call) ||
	    call->len > left || call->len % 8)
		return false;
	if (call->kind >= GWSIM_NODE_MAX || call->nr_parts > GWSIM_PARTS_MAX ||
	    call->delay_us > 10 * USEC_PER_SEC)
		return false;
	left = call->len - sizeof(*call);
	for (i = 0; i < call->nr_parts; i++) {
		if (left < sizeof(*p) || p->in_len > GWSIM_PART_MAX ||
		    p->out_len > GWSIM_PART_MAX || p->out_offset > GWSIM_PART_MAX ||
		    gws_part_bytes(p) > left)
			return false;
		if ((i == 0) != (p->ptr_offset == GWSIM_PART_ARG))
			return false;
		if (i == 0)
			arg_len = p->in_len;
		else if (p->ptr_offset > arg_len || arg_len - p->ptr_offset < 8)
			return false;
		left -= gws_part_bytes(p);
		p = gws_part_next(p);
	}
	return left == 0;
}

/* Once, at bind time, so that answering can trust every length. */
int gws_script_check(const void *script, size_t bytes, u64 *calls)
{
	size_t pos = 0;

	*calls = 0;
	while (pos < bytes) {
		const struct gwsim_call *call = script + pos;

		if (!gws_call_ok(call, bytes - pos))
			return -EINVAL;
		pos += call->len;
		++*calls;
	}
	return 0;
}

/* True when `offset` of the argument belongs to a pointer of another part. */
static bool gws_is_pointer(const struct gwsim_call *call, u32 offset)
{
	const struct gwsim_part *p = (const void *)(call + 1);
	u32 i;

	for (i = 1; i < call->nr_parts; i++) {
		p = gws_part_next(p);
		if (offset - p->ptr_offset < 8)
			return true;
	}
	return false;
}

/* Reads what the caller has; -EINVAL when it is not what was recorded. */
static int gws_part_read(const struct gwsim_call *call,
			 const struct gwsim_part *p, u64 addr, u8 *buf)
{
	const u8 *want = gws_part_in(p);
	bool arg = p->ptr_offset == GWSIM_PART_ARG;
	u32 i;

	if (p->in_len && copy_from_user(buf, u64_to_user_ptr(addr), p->in_len))
		return -EFAULT;
	if (!memcmp(buf, want, p->in_len))
		return 0;
	for (i = 0; i < p->in_len; i++)
		if (buf[i] != want[i] && !(arg && gws_is_pointer(call, i)))
			return -EINVAL;
	return 0;
}

/* Pointers keep the caller's value: the recorded one means nothing here. */
static int gws_part_write(const struct gwsim_call *call,
			  const struct gwsim_part *p, u64 addr, u8 *buf)
{
	const u8 *out = gws_part_out(p);
	bool arg = p->ptr_offset == GWSIM_PART_ARG;
	u32 i, at;

	for (i = 0; i < p->out_len; i++) {
		at = p->out_offset + i;
		if (!(arg && at < p->in_len && gws_is_pointer(call, at)))
			buf[at] = out[i];
	}
	if (p->out_len && copy_to_user(u64_to_user_ptr(addr + p->out_offset),
				       buf + p->out_offset, p->out_len))
		return -EFAULT;
	return 0;
}

struct gws_live {
	const struct gwsim_part *part;
	u64 addr;
	u8 *buf;	/* room for both directions */
};

static void gws_live_free(struct gws_live *live)
{
	int i;

	for (i = 0; i < GWSIM_PARTS_MAX; i++)
		kvfree(live[i].buf);
}

static int gws_live_read(const struct gwsim_call *call, struct gws_live *live,
			 u64 arg)
{
	const struct gwsim_part *p = (const void *)(call + 1);
	u32 i;
	int ret;

	for (i = 0; i < call->nr_parts; i++, p = gws_part_next(p)) {
		live[i].part = p;
		live[i].addr = arg;
		if (i)
			memcpy(&live[i].addr, live[0].buf + p->ptr_offset, 8);
		live[i].buf = kvzalloc(max3(p->in_len, p->out_offset + p->out_len, 1U),
				       GFP_KERNEL);
		if (!live[i].buf)
			return -ENOMEM;
		ret = gws_part_read(call, p, live[i].addr, live[i].buf);
		if (ret)
			return ret;
	}
	return 0;
}

static void gws_see_in(const struct gws_live *live, struct gws_seen *seen)
{
	if (!seen->hash)
		return;
	if (live[0].part) {
		seen->in_len = live[0].part->in_len;
		seen->in_hash = gwsim_hash(live[0].buf, seen->in_len);
	}
	if (live[1].part) {
		seen->nested_in_len = live[1].part->in_len;
		seen->nested_in_hash = gwsim_hash(live[1].buf, seen->nested_in_len);
	}
}

static void gws_see_out(const struct gws_live *live, struct gws_seen *seen)
{
	if (!seen->hash)
		return;
	if (live[0].part) {
		seen->out_len = live[0].part->out_len;
		seen->out_hash = gwsim_hash(live[0].buf + live[0].part->out_offset,
					    seen->out_len);
	}
	if (live[1].part) {
		seen->nested_out_len = live[1].part->out_len;
		seen->nested_out_hash = gwsim_hash(live[1].buf + live[1].part->out_offset,
						   seen->nested_out_len);
	}
}

static bool gws_xfer_matches(const struct gwsim_call *call, u64 *arg,
			     struct gws_seen *seen)
{
	struct gws_xfer xfer;

	if (!(call->flags & GWSIM_CALL_XFER))
		return true;
	if (copy_from_user(&xfer, u64_to_user_ptr(*arg), sizeof(xfer)))
		return false;
	*arg = xfer.ptr;
	seen->xfer = 1;
	seen->cmd = xfer.cmd;
	return xfer.cmd == call->inner_cmd && xfer.size == call->inner_size;
}

long gws_script_ioctl(struct gws_session *s, u32 kind, unsigned int cmd,
		      unsigned long user_arg, struct gws_seen *seen)
{
	const struct gwsim_call *call = gws_session_next(s);
	struct gws_live live[GWSIM_PARTS_MAX] = {};
	u64 arg = user_arg;
	u32 i;
	int err = -EINVAL;

	if (!call || call->op != GWSIM_OP_IOCTL || call->kind != kind ||
	    call->cmd != cmd || !gws_xfer_matches(call, &arg, seen))
		goto out;
	err = gws_live_read(call, live, arg);
	if (err)
		goto out;
	gws_see_in(live, seen);
	if (call->delay_us)
		usleep_range(call->delay_us, call->delay_us + 50);
	for (i = 0; i < call->nr_parts && !err; i++)
		err = gws_part_write(call, live[i].part, live[i].addr, live[i].buf);
	gws_see_out(live, seen);
out:
	gws_live_free(live);
	gws_session_result(s, !err);
	return err ? -EINVAL : call->ret;
}

/* An open or mmap: only the kind and the answer matter. */
int gws_script_simple(struct gws_session *s, u32 op, u32 kind)
{
	const struct gwsim_call *call = gws_session_next(s);
	bool ok = call && call->op == op && call->kind == kind;

	gws_session_result(s, ok);
	return ok ? call->ret : -EINVAL;
}
