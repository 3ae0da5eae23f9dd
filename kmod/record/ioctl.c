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
	u32 in, out, out_offset, flags, want = encoded;

	preempt_disable(); /* an RCU read section, and cheaper than its calls */
	step = gw_plan_find(rcu_dereference_sched(gw_plan), kind, cmd);
	in = step->in_bytes;
	out = step->out_bytes;
	flags = step->flags;
	out_offset = step->out_offset;
	if (unlikely(flags & GW_STEP_NESTED))
		memcpy(to->nested, step->nested, sizeof(to->nested));
	preempt_enable();
	if (unlikely(!encoded))
		want = flags & GW_STEP_DEFAULT ? 0 : max(in, out + out_offset);
	to->want = want;
	if (likely(flags & GW_STEP_PLAIN && want >= in && want >= out)) {
		to->in = in;
		to->out = out;
		return true;
	}
	to->flags = flags;
	to->out_offset = out_offset;
	to->in = min(in, want);
	to->out = want > out_offset ? min(out, want - out_offset) : 0;
	/* A command without entry and of a common size. */
	return flags & GW_STEP_DEFAULT && to->in && to->in % 8 == 0 && to->in <= GW_STAGE_INLINE;
}

/* Bytes that a capture of @len bytes takes in the stage. */
static u32 gw_capture_bytes(u32 len)
{
	return sizeof(struct gpuwatch_capture) + ALIGN(len, 8);
}

/* A pool buffer, once it is known that the small stage will not do. */
static void gw_stage_expect(struct gw_stage *stage, u32 bytes)
{
	if (unlikely(bytes > stage->room - stage->used) && !stage->nofault && !stage->pooled)
		gw_stage_enlarge(stage);
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

/*
 * @bytes: the argument as it was copied, arg.in bytes of it, or NULL. False
 * when there is nothing behind it.
 */
static bool gw_nested_enter(struct gw_call *call, const u8 *bytes)
{
	static const u8 what[] = { GPUWATCH_CAP_NESTED0_IN, GPUWATCH_CAP_NESTED1_IN };
	u32 expect = gw_capture_bytes(call->arg.out);
	unsigned int i;

	for (i = 0; i < 2; i++) {
		const struct gpuwatch_plan_nested *plan = &call->arg.nested[i];
		struct gw_nested *nested = &call->nested[i];

		nested->len = 0;
		if (!bytes || plan->len_kind == GPUWATCH_LEN_NONE)
			continue;
		gw_nested_find(nested, plan, bytes, call->arg.in);
		if (nested->len)
			expect += hweight16(plan->directions) * gw_capture_bytes(nested->len);
	}
	if (!call->nested[0].len && !call->nested[1].len)
		return false;
	gw_stage_expect(&call->stage, expect);
	for (i = 0; i < 2; i++) {
		const struct gw_nested *nested = &call->nested[i];

		if (nested->len && call->arg.nested[i].directions & 1)
			gw_stage_copy(&call->stage, what[i], nested->ptr, nested->want,
				      nested->len);
	}
	return true;
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
static noinline void gw_snapshot_slow(struct gw_call *call, void *buf, u32 bytes, bool nofault)
{
	struct gw_argument *arg = &call->arg;
	const u8 *copy = NULL;

	gw_stage_begin(&call->stage, buf, bytes, nofault);
	if (arg->flags & GPUWATCH_PLAN_XFER)
		gw_unwrap_xfer(call);
	gw_stage_expect(&call->stage, gw_capture_bytes(arg->in) + gw_capture_bytes(arg->out));
	if (arg->in)
		copy = gw_stage_copy(&call->stage, GPUWATCH_CAP_ARG_IN, arg->ptr, arg->want,
				     arg->in);
	if (arg->flags & GW_STEP_NESTED && gw_nested_enter(call, copy))
		return;
	/* Often a pointer is NULL; what is left is an argument like others. */
	arg->flags = 0;
	if (arg->in && !arg->out_offset && arg->out % 8 == 0 && arg->out <= GW_STAGE_INLINE &&
	    call->stage.nr == 1 && call->stage.buf == call->small) {
		arg->in_used = call->stage.used;
		call->plain = true;
	}
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
	if (likely(call->stage.buf == call->small)) {
		gw_emit_plain(call, sizeof(call->fixed) + call->stage.used);
		return;
	}
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

/* False: nobody wants it. */
static __always_inline bool gw_call_begin(struct gw_call *call, struct file *file,
					  unsigned int cmd, unsigned long argument)
{
	call->wanted = gw_record_file(file, &call->file) &&
		       gw_consumer_wanted(GPUWATCH_REC_IOCTL, call->file.kind);
	if (unlikely(!call->wanted))
		return false;
	call->flags = unlikely(in_compat_syscall()) ? GPUWATCH_F_COMPAT : 0;
	call->fixed.cmd = cmd;
	call->fixed.inner_cmd = 0;
	call->fixed.arg = argument;
	call->fixed.inner_size = 0;
	call->arg.ptr = argument;
	return true;
}

void gw_record_ioctl_enter(struct gw_call *call, struct file *file, unsigned int cmd,
			   unsigned long argument)
{
	struct gw_argument *arg = &call->arg;

	if (unlikely(!gw_call_begin(call, file, cmd, argument)))
		return;
	call->plain = gw_argument_find(arg, call->file.kind, cmd, gw_encoded_bytes(cmd));
	if (likely(call->plain))
		arg->in_used = gw_snapshot_plain((void *)call->small, GPUWATCH_CAP_ARG_IN, arg,
						 arg->in);
	else
		gw_snapshot_slow(call, call->small, sizeof(call->small), false);
	call->begin = gw_clock_mark();
}

void gw_record_ioctl_enter_atomic(struct gw_call *call, struct file *file, unsigned int cmd,
				  unsigned long argument, u16 flags, void *buf, u32 bytes)
{
	struct gw_argument *arg = &call->arg;

	if (!gw_call_begin(call, file, cmd, argument))
		return;
	call->flags |= flags;
	arg->flags = 0;
	arg->out_offset = 0;
	gw_argument_find(arg, call->file.kind, cmd, gw_encoded_bytes(cmd));
	call->plain = false;
	gw_snapshot_slow(call, buf, bytes, true);
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
