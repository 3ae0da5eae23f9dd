// SPDX-License-Identifier: GPL-2.0
/*
 * target.c - the table of driver functions. A slot that was removed may be
 * used again only when no call is left in its wrapper.
 */
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "hook/hook.h"
#include "record/record.h"

struct gw_target gw_targets[GW_TARGETS_MAX];
DEFINE_MUTEX(gw_hook_lock); /* slots, tables, state: see hook.h */
DEFINE_PER_CPU(struct gw_flow[GW_TARGETS_MAX], gw_flows);

static bool gw_use_kretprobe;
module_param_named(kretprobe, gw_use_kretprobe, bool, 0444);
MODULE_PARM_DESC(kretprobe, "hook driver functions by kretprobe even where ftrace could (for tests)");

void gw_target_init(void)
{
	unsigned int i;

	for (i = 0; i < GW_TARGETS_MAX; i++) {
		gw_targets[i].op = i / GW_TARGETS_PER_OP;
		gw_targets[i].wrapper = gw_wrapper(gw_targets[i].op, i % GW_TARGETS_PER_OP);
	}
}

/* Exact only when no call goes in; else it may be too high by those under way. */
void gw_target_flow(const struct gw_target *target, u64 *calls, u64 *in_flight)
{
	u64 in = 0, out = 0;
	unsigned int cpu;

	/* `out` first: a call between the two sums counts as in flight. */
	for_each_possible_cpu(cpu)
		out += READ_ONCE(per_cpu(gw_flows, cpu)[target - gw_targets].out);
	smp_rmb(); /* order of the two sums; no partner: counters only grow */
	for_each_possible_cpu(cpu)
		in += READ_ONCE(per_cpu(gw_flows, cpu)[target - gw_targets].in);
	*calls = in;
	*in_flight = in - out;
}

u64 gw_target_in_flight(void)
{
	u64 calls, in_flight, sum = 0;
	unsigned int i;

	for (i = 0; i < GW_TARGETS_MAX; i++) {
		gw_target_flow(&gw_targets[i], &calls, &in_flight);
		sum += in_flight;
	}
	return sum;
}

static bool gw_target_idle(const struct gw_target *target)
{
	u64 calls, in_flight;

	gw_target_flow(target, &calls, &in_flight);
	return !in_flight;
}

/* The slot for @func, new or known; -ENOSPC when all of its kind are taken. */
struct gw_target *gw_target_add(enum gpuwatch_op op, unsigned long func, const char *module)
{
	struct gw_target *first = &gw_targets[op * GW_TARGETS_PER_OP], *target = NULL;
	unsigned int i;

	lockdep_assert_held(&gw_hook_lock);
	for (i = 0; i < GW_TARGETS_PER_OP; i++) {
		if (first[i].func == func)
			return &first[i];
		if (!target && !first[i].func && first[i].wrapper && gw_target_idle(&first[i]))
			target = &first[i];
	}
	if (!target)
		return ERR_PTR(-ENOSPC);
	target->func = func;
	target->body = 0;
	target->error = 0;
	strscpy(target->module, module, sizeof(target->module));
	return target;
}

/* Redirect first; kretprobe where that can't be. */
int gw_target_hook(struct gw_target *target)
{
	int err = -EOPNOTSUPP;

	lockdep_assert_held(&gw_hook_lock);
	if (target->method != GPUWATCH_METHOD_NONE)
		return 0;
	/* Opens are discovered in the wrapper, which may sleep: keep to it. */
	if (!gw_use_kretprobe || target->op == GPUWATCH_OP_OPEN ||
	    target->op == GPUWATCH_OP_MMAP_PREPARE) {
		err = gw_redirect_set(target);
		if (!err)
			target->method = GPUWATCH_METHOD_REDIRECT;
	}
	if (err && target->op != GPUWATCH_OP_MMAP_PREPARE) {
		err = gw_kretprobe_set(target);
		if (!err)
			target->method = GPUWATCH_METHOD_KRETPROBE;
	}
	target->error = err;
	gw_record_state(err ? GPUWATCH_STATE_HOOK_FAILED : GPUWATCH_STATE_HOOKED, target->op, err,
			target->module);
	return err;
}

static void gw_target_unhook(struct gw_target *target)
{
	if (target->method == GPUWATCH_METHOD_REDIRECT)
		gw_redirect_clear(target);
	else if (target->method == GPUWATCH_METHOD_KRETPROBE)
		gw_kretprobe_clear(target);
	target->method = GPUWATCH_METHOD_NONE;
}

/* Forgets the function: its text is about to go. */
void gw_target_remove(struct gw_target *target)
{
	lockdep_assert_held(&gw_hook_lock);
	gw_target_unhook(target);
	target->func = 0;
}

void gw_target_hook_all(void)
{
	unsigned int i;

	lockdep_assert_held(&gw_hook_lock);
	for (i = 0; i < GW_TARGETS_MAX; i++)
		if (gw_targets[i].func)
			gw_target_hook(&gw_targets[i]);
}

void gw_target_unhook_all(void)
{
	unsigned int i;

	lockdep_assert_held(&gw_hook_lock);
	gw_redirect_stop(); /* one wait for all of them */
	for (i = 0; i < GW_TARGETS_MAX; i++)
		if (gw_targets[i].func)
			gw_target_unhook(&gw_targets[i]);
}

unsigned int gw_target_count(void)
{
	unsigned int i, count = 0;

	lockdep_assert_held(&gw_hook_lock);
	for (i = 0; i < GW_TARGETS_MAX; i++)
		count += !!gw_targets[i].func;
	return count;
}

int gw_target_get(struct gpuwatch_target *to)
{
	u32 wanted = to->index, seen = 0;
	unsigned int i;
	int err = -ENOENT;

	mutex_lock(&gw_hook_lock);
	for (i = 0; i < GW_TARGETS_MAX; i++) {
		const struct gw_target *target = &gw_targets[i];

		if (!target->func || seen++ != wanted)
			continue;
		*to = (struct gpuwatch_target) {
			.index = wanted,
			.op = target->op,
			.method = target->method,
			.error = target->error,
		};
		gw_target_flow(target, &to->calls, &to->in_flight);
		strscpy(to->module, target->module, sizeof(to->module));
		err = 0;
		break;
	}
	mutex_unlock(&gw_hook_lock);
	return err;
}
