// SPDX-License-Identifier: GPL-2.0
/*
 * redirect.c - the first method: an ftrace callback changes the instruction
 * pointer at the entry of the driver's function to a wrapper of ours, as live
 * patches do. The wrapper calls the function at its real address; the callback
 * sees that the caller is ours and lets that call through.
 */
#include "compat/ftrace.h"
#include "compat/module.h"
#include "hook/hook.h"
#include "record/consumer.h"

static unsigned long gw_text __read_mostly;
static unsigned long gw_text_bytes __read_mostly;

int gw_redirect_init(void)
{
	gw_text = gw_module_text(THIS_MODULE, &gw_text_bytes);
	return gw_text_bytes ? 0 : -EINVAL;
}

/* Runs with preemption off, before the first instruction of the function. */
static void notrace gw_redirect(unsigned long ip, unsigned long parent_ip,
				struct ftrace_ops *ops, GW_FTRACE_ARG *regs)
{
	const struct gw_target *target = container_of(ops, struct gw_target, ftrace);

	if (!gw_consumer_any() || parent_ip - gw_text < gw_text_bytes)
		return;
	gw_ftrace_set_ip(regs, target->wrapper);
}

/*
 * Where ftrace's call lies: at the start of the function, or behind an ENDBR64
 * (CONFIG_X86_KERNEL_IBT). ftrace refuses an address that is no such place.
 */
static int gw_redirect_filter(struct gw_target *target, bool remove)
{
	static const unsigned long offsets[] = { 0, 4 };
	int err = -EINVAL;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(offsets) && err; i++)
		err = ftrace_set_filter_ip(&target->ftrace, target->func + offsets[i], remove, 0);
	return err;
}

int gw_redirect_set(struct gw_target *target)
{
	int err;

	memset(&target->ftrace, 0, sizeof(target->ftrace));
	target->ftrace.func = gw_redirect;
	target->ftrace.flags = GW_FTRACE_FLAGS;
	err = gw_redirect_filter(target, false);
	if (err)
		return err;
	err = register_ftrace_function(&target->ftrace);
	if (err)
		gw_redirect_filter(target, true);
	return err;
}

/* On return no new call is redirected; calls in flight are counted in flow. */
void gw_redirect_clear(struct gw_target *target)
{
	unregister_ftrace_function(&target->ftrace);
	/* Frees the filter; ftrace_free_filter() is not exported on 5.10. */
	gw_redirect_filter(target, true);
}
