// SPDX-License-Identifier: GPL-2.0
/*
 * ioctl.c - what is copied for one ioctl, by the plan. Lengths and pointers
 * come from the caller and only ever bound a checked copy; none is interpreted
 * further.
 */
#include <linux/compat.h>
#include <linux/rcupdate.h>
#include <linux/ktime.h>

#include "compat/uninit.h"
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

/*
 * Fills all of @to but ptr, nested only when there is something in it. True
 * when the argument is plain: see GW_STEP_PLAIN, and not cut by its own size.
 */
static __always_inline bool gw_argument_find(struct gw_argument *to, u8 kind, u32 cmd,
					     u32 encoded)
{
	const struct gw_plan_step *step;
	u32 in, out, flags, want = encoded;

	preempt_disable(); /* an RCU read section, and cheaper than its calls */
	step = gw_plan_find(rcu_dereference_sched(gw_plan), kind, cmd);
	in = step->in_bytes;
	out = step->out_bytes;
	flags = step->flags;
	to->out_offset = step->out_offset;
	if (unlikely(flags & GW_STEP_NESTED))
		memcpy(to->nested, step->nested, sizeof(to->nested));
	preempt_enable();
	to->flags = flags;
	if (unlikely(!encoded))
		want = flags & GW_STEP_DEFAULT ? 0 : max(in, out + to->out_offset);
	to->want = want;
	if (likely(flags & GW_STEP_PLAIN && want >= max(in, out))) {
		to->in = in;
		to->out = out;
		return true;
	}
	to->in = min(in, want);
	to->out = want > to->out_offset ? min(out, want - to->out_offset) : 0;
	/* A command without entry and of a common size. */
	return flags & GW_STEP_DEFAULT && to->in && to->in % 8 == 0 && to->in <= GW_STAGE_INLINE;
}

/* An upper bound of what both snapshots of a call will need. */
static u32 gw_stage_need(const struct gw_argument *arg)
{
	const u32 head = sizeof(struct gpuwatch_capture) + 7;
	u32 need = arg->in + arg->out + 2 * head;
	unsigned int i;

	if (arg->flags & GPUWATCH_PLAN_XFER)
		return GW_STAGE_LARGE;
	if (arg->flags & GW_STEP_NESTED)
		for (i = 0; i < 2; i++)
			if (arg->nested[i].len_kind != GPUWATCH_LEN_NONE)
				need += 2 * (arg->nested[i].cap + head);
	return need;
}

/* The wrapper is {u32 cmd, u32 size, u64 ptr}; from here on arg is the inner one. */
static void gw_unwrap_xfer(struct gw_call *call)
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
	call->flags |= GPUWATCH_F_XFER;
	call->fixed.inner_cmd = wrap.cmd;
	call->fixed.inner_size = wrap.size;
	arg->ptr = wrap.ptr;
	gw_argument_find(arg, call->file.kind,
			 min_t(u32, wrap.size, _IOC_SIZEMASK) << _IOC_SIZESHIFT |
			 (wrap.cmd & 0xff), wrap.size);
	/* The driver refuses a wrapper in a wrapper. */
	if (!wrap.size || arg->flags & GPUWATCH_PLAN_XFER) {
		arg->want = 0;
		arg->in = 0;
		arg->out = 0;
		arg->flags = 0;
	}
}

/* @bytes: the argument as it was copied, arg.in bytes of it, or NULL. */
static void gw_nested_enter(struct gw_call *call, const u8 *bytes)
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

/* Wrapped, nested, large, odd, or not allowed to sleep: all but a plain argument. */
static noinline void gw_snapshot_slow(struct gw_call *call, void *buf, u32 bytes)
{
	struct gw_argument *arg = &call->arg;
	const u8 *copy = NULL;

	if (buf) {
		gw_stage_begin(&call->stage, buf, bytes, true);
	} else {
		gw_stage_begin(&call->stage, call->small, sizeof(call->small), false);
		if (gw_stage_need(arg) > sizeof(call->small))
			gw_stage_enlarge(&call->stage);
	}
	if (arg->flags & GPUWATCH_PLAN_XFER)
		gw_unwrap_xfer(call);
	if (arg->in)
		copy = gw_stage_copy(&call->stage, GPUWATCH_CAP_ARG_IN, arg->ptr, arg->want,
				     arg->in);
	if (arg->flags & GW_STEP_NESTED)
		gw_nested_enter(call, copy);
}

static noinline void gw_record_slow(struct gw_call *call)
{
	const struct gw_argument *arg = &call->arg;
	struct gw_source source GW_UNINIT;
	struct gpuwatch_capture *out;
	u32 used;

	if (arg->out) {
		out = (void *)(call->stage.buf + call->stage.used);
		used = call->stage.used;
		gw_stage_copy(&call->stage, GPUWATCH_CAP_ARG_OUT, arg->ptr + arg->out_offset,
			      arg->want, arg->out);
		if (call->stage.used != used)
			out->offset = arg->out_offset;
	}
	if (arg->flags & GW_STEP_NESTED)
		gw_nested_exit(call);
	call->fixed.nr_captures = call->stage.nr;
	call->fixed.pad = 0;
	source = (struct gw_source) {
		.type = GPUWATCH_REC_IOCTL,
		.flags = call->flags,
		.file = &call->file,
		.fixed = &call->fixed,
		.fixed_bytes = sizeof(call->fixed),
		.data = call->stage.buf,
		.data_bytes = call->stage.used,
		.duration_ns = &call->fixed.duration_ns,
		.begin = call->begin,
	};
	gw_emit(&source);
	gw_stage_end(&call->stage);
}

/* Capture of whole words at @head; returns what it takes of the small stage. */
static __always_inline u32 gw_snapshot_plain(struct gpuwatch_capture *head,
					     enum gpuwatch_capture_what what,
					     const struct gw_argument *arg, u32 len)
{
	gw_capture_head(head, what, arg->want, len);
	if (likely(gw_stage_copy_words((u8 *)(head + 1), u64_to_user_ptr(arg->ptr), len)))
		return sizeof(*head) + len;
	head->flags |= GPUWATCH_CAPF_FAULT;
	head->len = 0;
	return sizeof(*head);
}

void gw_record_ioctl_enter(struct gw_call *call, struct file *file, unsigned int cmd,
			   unsigned long argument, u16 flags, void *buf, u32 bytes)
{
	struct gw_argument *arg = &call->arg;

	call->wanted = gw_record_file(file, &call->file) &&
		       gw_consumer_wanted(GPUWATCH_REC_IOCTL, call->file.kind);
	if (unlikely(!call->wanted))
		return;
	call->flags = unlikely(in_compat_syscall()) ? flags | GPUWATCH_F_COMPAT : flags;
	call->fixed.cmd = cmd;
	call->fixed.inner_cmd = 0;
	call->fixed.arg = argument;
	call->fixed.inner_size = 0;

	arg->ptr = argument;
	call->plain = gw_argument_find(arg, call->file.kind, cmd, gw_encoded_bytes(cmd)) && !buf;
	if (likely(call->plain))
		arg->in_used = gw_snapshot_plain((void *)call->small, GPUWATCH_CAP_ARG_IN, arg,
						 arg->in);
	else
		gw_snapshot_slow(call, buf, bytes);
	call->begin = gw_clock_mark();
}

/* The second snapshot, and the record. */
void gw_record_ioctl_exit(struct gw_call *call, long ret)
{
	const struct gw_argument *arg = &call->arg;
	u32 used, captures = 1;

	if (unlikely(!call->wanted))
		return;
	call->fixed.ret = ret;
	if (unlikely(!call->plain)) {
		gw_record_slow(call);
		return;
	}
	used = arg->in_used;
	if (likely(arg->out)) {
		used += gw_snapshot_plain((void *)(call->small + used), GPUWATCH_CAP_ARG_OUT, arg,
					  arg->out);
		captures = 2;
	}
	call->fixed.nr_captures = captures;
	call->fixed.pad = 0;
	gw_emit_plain(call, sizeof(call->fixed) + used);
}
