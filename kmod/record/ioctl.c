// SPDX-License-Identifier: GPL-2.0
/*
 * ioctl.c - what is copied for one ioctl, by the plan. Lengths and pointers
 * come from the caller and only ever bound a checked copy; none is interpreted
 * further.
 */
#include <linux/compat.h>
#include <linux/rcupdate.h>
#include <linux/ktime.h>

#include "record/consumer.h"
#include "record/emit.h"
#include "record/plan.h"
#include "record/record.h"

static u32 gw_u32_at(const u8 *bytes, u32 offset)
{
	return *(const u32 *)(bytes + offset);
}

/* Pointer and length of a nested buffer, from the argument before the call. */
static void gw_nested_find(struct gw_nested *to, const struct gpuwatch_plan_nested *plan,
			   const u8 *arg, u32 arg_len)
{
	u32 want = 0;

	if (plan->ptr_offset + 8U > arg_len)
		return;
	memcpy(&to->ptr, arg + plan->ptr_offset, sizeof(to->ptr));
	if (!to->ptr)
		return;
	if (plan->len_kind == GPUWATCH_LEN_FIXED)
		want = plan->len_value;
	if (plan->len_kind == GPUWATCH_LEN_BY_KEY && plan->key_offset + 4U <= arg_len)
		want = gw_plan_size(gw_u32_at(arg, plan->key_offset));
	if (plan->len_kind != GPUWATCH_LEN_FIXED && !want && plan->len_value + 4U <= arg_len)
		want = gw_u32_at(arg, plan->len_value);
	to->want = want;
	to->len = min_t(u32, want, plan->cap);
	to->after = plan->directions & 2;
}

/* Bytes that a request word declares for its argument, 0 when it does not. */
static u32 gw_encoded_bytes(u32 cmd)
{
	return _IOC_DIR(cmd) == _IOC_NONE ? 0 : _IOC_SIZE(cmd);
}

/* What the plan says for one call; a copy, since user copies may sleep. */
struct gw_argument {
	u64 ptr;
	u32 want;
	u32 in;
	u32 out;
	bool xfer;
	bool has_nested;
	struct gpuwatch_plan_nested nested[2];
};

static void gw_argument_find(struct gw_argument *to, u8 kind, u32 cmd, u32 encoded)
{
	const struct gw_plan_step *step;
	const struct gw_plan *plan;

	to->xfer = false;
	to->has_nested = false;
	to->want = encoded;
	rcu_read_lock();
	plan = rcu_dereference(gw_plan);
	step = gw_plan_find(plan, kind, cmd);
	if (step) {
		to->in = step->in_bytes;
		to->out = step->out_bytes;
		if (!encoded)
			to->want = max(to->in, to->out);
		to->xfer = step->flags & GPUWATCH_PLAN_XFER;
		if (step->flags & GW_STEP_NESTED) {
			to->has_nested = true;
			memcpy(to->nested, step->nested, sizeof(to->nested));
		}
	} else {
		to->in = plan->default_bytes;
		to->out = plan->default_bytes;
	}
	rcu_read_unlock();
	to->in = min(to->in, to->want);
	to->out = min(to->out, to->want);
}

/* An upper bound of what both snapshots of a call will need. */
static u32 gw_stage_need(const struct gw_argument *arg)
{
	const u32 head = sizeof(struct gpuwatch_capture) + 7;
	u32 need = arg->in + arg->out + 2 * head;
	unsigned int i;

	if (!arg->has_nested)
		return need;
	for (i = 0; i < 2; i++)
		if (arg->nested[i].len_kind != GPUWATCH_LEN_NONE)
			need += 2 * (arg->nested[i].cap + head);
	return need;
}

/* The wrapper is {u32 cmd, u32 size, u64 ptr}; from here on @arg is the inner one. */
static noinline void gw_unwrap_xfer(struct gw_call *call, struct gw_argument *arg)
{
	struct {
		u32 cmd;
		u32 size;
		u64 ptr;
	} wrap = {};
	const u8 *bytes;

	bytes = gw_stage_copy(&call->stage, GPUWATCH_CAP_XFER_IN, arg->ptr, sizeof(wrap),
			      sizeof(wrap), call->nofault);
	if (bytes)
		memcpy(&wrap, bytes, sizeof(wrap));
	call->flags |= GPUWATCH_F_XFER;
	call->fixed.inner_cmd = wrap.cmd;
	call->fixed.inner_size = wrap.size;
	arg->ptr = wrap.ptr;
	gw_argument_find(arg, call->file.kind,
			 min_t(u32, wrap.size, _IOC_SIZEMASK) << _IOC_SIZESHIFT |
			 (wrap.cmd & 0xff), wrap.size);
	if (!wrap.size || arg->xfer) { /* the driver refuses a wrapper in a wrapper */
		arg->want = 0;
		arg->in = 0;
		arg->out = 0;
		arg->has_nested = false;
	}
}

static void gw_call_snapshot(struct gw_call *call, const struct gw_argument *arg)
{
	static const u8 what[] = { GPUWATCH_CAP_NESTED0_IN, GPUWATCH_CAP_NESTED1_IN };
	const u8 *bytes;
	unsigned int i;

	call->out_ptr = arg->ptr;
	call->out_want = arg->want;
	call->out_len = arg->out;
	call->nested[0].len = 0;
	call->nested[1].len = 0;
	if (!arg->want)
		return;
	bytes = gw_stage_copy(&call->stage, GPUWATCH_CAP_ARG_IN, arg->ptr, arg->want, arg->in,
			      call->nofault);
	if (!bytes || !arg->has_nested)
		return;
	for (i = 0; i < 2; i++) {
		struct gw_nested *nested = &call->nested[i];

		if (arg->nested[i].len_kind == GPUWATCH_LEN_NONE)
			continue;
		gw_nested_find(nested, &arg->nested[i], bytes, arg->in);
		if (nested->len && arg->nested[i].directions & 1)
			gw_stage_copy(&call->stage, what[i], nested->ptr, nested->want,
				      nested->len, call->nofault);
	}
}

void gw_record_ioctl_enter(struct gw_call *call, struct file *file, unsigned int cmd,
			   unsigned long argument, u16 flags, void *buf, u32 bytes)
{
	struct gw_argument arg;

	call->wanted = gw_record_file(file, &call->file) &&
		       gw_consumer_wanted(GPUWATCH_REC_IOCTL, call->file.kind);
	if (unlikely(!call->wanted))
		return;
	call->nofault = buf;
	call->flags = flags;
	if (in_compat_syscall())
		call->flags |= GPUWATCH_F_COMPAT;
	call->fixed.cmd = cmd;
	call->fixed.inner_cmd = 0;
	call->fixed.inner_size = 0;
	call->fixed.arg = argument;
	call->fixed.pad = 0;

	arg.ptr = argument;
	gw_argument_find(&arg, call->file.kind, cmd, gw_encoded_bytes(cmd));
	if (unlikely(buf))
		gw_stage_begin_in(&call->stage, buf, bytes);
	else
		gw_stage_begin(&call->stage, arg.xfer ? GW_STAGE_LARGE : gw_stage_need(&arg));
	if (unlikely(arg.xfer))
		gw_unwrap_xfer(call, &arg);
	gw_call_snapshot(call, &arg);
	call->begin_ns = ktime_get_ns();
}

/* The second snapshot, and the record. */
void gw_record_ioctl_exit(struct gw_call *call, long ret)
{
	static const u8 what[] = { GPUWATCH_CAP_NESTED0_OUT, GPUWATCH_CAP_NESTED1_OUT };
	struct gw_source source;
	unsigned int i;

	if (unlikely(!call->wanted))
		return;
	if (call->out_len)
		gw_stage_copy(&call->stage, GPUWATCH_CAP_ARG_OUT, call->out_ptr, call->out_want,
			      call->out_len, call->nofault);
	for (i = 0; i < 2; i++)
		if (unlikely(call->nested[i].len && call->nested[i].after))
			gw_stage_copy(&call->stage, what[i], call->nested[i].ptr,
				      call->nested[i].want, call->nested[i].len, call->nofault);
	call->fixed.ret = ret;
	call->fixed.nr_captures = call->stage.nr;

	source.type = GPUWATCH_REC_IOCTL;
	source.flags = call->flags;
	source.file = &call->file;
	source.fixed = &call->fixed;
	source.fixed_bytes = sizeof(call->fixed);
	source.data = call->stage.buf;
	source.data_bytes = call->stage.used;
	source.duration_ns = &call->fixed.duration_ns;
	source.begin_ns = call->begin_ns;
	gw_emit(&source);
	gw_stage_end(&call->stage);
}
