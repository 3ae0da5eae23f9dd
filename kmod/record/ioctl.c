// SPDX-License-Identifier: GPL-2.0
/*
 * ioctl.c - what is copied for one ioctl, by the plan. Lengths and pointers
 * come from the caller and only ever bound a checked copy; none is interpreted
 * further.
 */
#include <linux/compat.h>
#include <linux/rcupdate.h>
#include <linux/ktime.h>

#include "record/clock.h"
#include "record/consumer.h"
#include "record/emit.h"
#include "record/node.h"
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

static __always_inline void gw_argument_find(struct gw_argument *to, u8 kind, u32 cmd, u32 encoded)
{
	const struct gw_plan_step *step;
	const struct gw_plan *plan;

	to->xfer = false;
	to->has_nested = false;
	to->want = encoded;
	preempt_disable(); /* an RCU read section, and cheaper than its calls */
	plan = rcu_dereference_sched(gw_plan);
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
	preempt_enable();
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

/* The wrapper is {u32 cmd, u32 size, u64 ptr}; from here on arg is the inner one. */
static noinline void gw_unwrap_xfer(struct gw_call *call)
{
	struct gw_argument *arg = &call->arg;
	struct {
		u32 cmd;
		u32 size;
		u64 ptr;
	} wrap = {};
	const u8 *bytes;

	bytes = gw_stage_copy(&call->stage, GPUWATCH_CAP_XFER_IN, arg->ptr, sizeof(wrap),
			      sizeof(wrap));
	if (bytes)
		memcpy(&wrap, bytes, sizeof(wrap));
	call->source.flags |= GPUWATCH_F_XFER;
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

/* @bytes: the argument as it was copied, arg.in bytes of it. */
static noinline void gw_nested_enter(struct gw_call *call, const u8 *bytes)
{
	static const u8 what[] = { GPUWATCH_CAP_NESTED0_IN, GPUWATCH_CAP_NESTED1_IN };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		const struct gpuwatch_plan_nested *plan = &call->arg.nested[i];
		struct gw_nested *nested = &call->nested[i];

		nested->len = 0;
		if (!bytes || plan->len_kind == GPUWATCH_LEN_NONE)
			continue;
		gw_nested_find(nested, plan, bytes, call->arg.in);
		if (nested->len && plan->directions & 1)
			gw_stage_copy(&call->stage, what[i], nested->ptr, nested->want,
				      nested->len);
	}
}

static noinline void gw_nested_exit(struct gw_call *call)
{
	static const u8 what[] = { GPUWATCH_CAP_NESTED0_OUT, GPUWATCH_CAP_NESTED1_OUT };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		const struct gw_nested *nested = &call->nested[i];

		if (nested->len && nested->after)
			gw_stage_copy(&call->stage, what[i], nested->ptr, nested->want,
				      nested->len);
	}
}

void gw_record_ioctl_enter(struct gw_call *call, struct file *file, unsigned int cmd,
			   unsigned long argument, u16 flags, void *buf, u32 bytes)
{
	struct gw_argument *arg = &call->arg;
	const u8 *copy = NULL;

	call->wanted = gw_record_file(file, &call->file) &&
		       gw_consumer_wanted(GPUWATCH_REC_IOCTL, call->file.kind);
	if (unlikely(!call->wanted))
		return;
	call->source.flags = flags;
	if (unlikely(in_compat_syscall()))
		call->source.flags |= GPUWATCH_F_COMPAT;
	call->fixed.cmd = cmd;
	call->fixed.inner_cmd = 0;
	call->fixed.arg = argument;
	call->fixed.inner_size = 0;
	call->fixed.pad = 0;

	arg->ptr = argument;
	gw_argument_find(arg, call->file.kind, cmd, gw_encoded_bytes(cmd));
	if (unlikely(buf))
		gw_stage_begin_in(&call->stage, buf, bytes);
	else
		gw_stage_begin(&call->stage, arg->xfer ? GW_STAGE_LARGE : gw_stage_need(arg));
	if (unlikely(arg->xfer))
		gw_unwrap_xfer(call);
	if (likely(arg->want))
		copy = gw_stage_copy(&call->stage, GPUWATCH_CAP_ARG_IN, arg->ptr, arg->want,
				     arg->in);
	if (arg->has_nested)
		gw_nested_enter(call, copy);
	call->source.begin = gw_clock_mark();
}

/* The second snapshot, and the record. */
void gw_record_ioctl_exit(struct gw_call *call, long ret)
{
	struct gw_source *source = &call->source;
	const struct gw_argument *arg = &call->arg;

	if (unlikely(!call->wanted))
		return;
	if (likely(arg->out))
		gw_stage_copy(&call->stage, GPUWATCH_CAP_ARG_OUT, arg->ptr, arg->want, arg->out);
	if (arg->has_nested)
		gw_nested_exit(call);
	call->fixed.ret = ret;
	call->fixed.nr_captures = call->stage.nr;

	source->type = GPUWATCH_REC_IOCTL;
	source->file = &call->file;
	source->fixed = &call->fixed;
	source->fixed_bytes = sizeof(call->fixed);
	source->data = call->stage.buf;
	source->data_bytes = call->stage.used;
	source->duration_ns = &call->fixed.duration_ns;
	gw_emit(source);
	gw_stage_end(&call->stage);
}
