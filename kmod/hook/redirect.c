// SPDX-License-Identifier: GPL-2.0
/*
 * redirect.c - the first method: an ftrace callback changes the instruction
 * pointer at the entry of the driver's function to a wrapper of ours, as live
 * patches do. The wrapper goes on behind the ftrace site, so that other users
 * of ftrace see the call once. Where the processor or the compiler demands that
 * functions are entered at their start (IBT, kCFI), it does that, and the
 * callback sees that the caller is ours and lets the call through.
 *
 * One ftrace_ops serves all functions: taking out the last one waits for a
 * grace period of all tasks, a tenth of a second or more, and that once.
 */
#include <linux/hash.h>
#include <linux/log2.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>

#include "compat/ftrace.h"
#include "compat/module.h"
#include "hook/hook.h"
#include "record/consumer.h"
#include "record/tap.h"

#define GW_SITES 512	/* at least four times GW_TARGETS_MAX, a power of two */

/*
 * From ftrace site to target: open addressing by the site's address. Entries
 * are added in place, target first. To take some out while callbacks look, a
 * second table is filled and put in the first one's place.
 */
struct gw_site {
	unsigned long site;
	struct gw_target *target;
};

static struct gw_site gw_site_tables[2][GW_SITES];
static struct gw_site *gw_sites __read_mostly = gw_site_tables[0];

static unsigned long gw_text __read_mostly;
static unsigned long gw_text_bytes __read_mostly;
static unsigned int gw_redirects;	/* functions in the filter of gw_redirect_ops */
static bool gw_registered;		/* gw_redirect_ops is live */

static bool gw_enter_at_start;
module_param_named(enter_at_start, gw_enter_at_start, bool, 0444);
MODULE_PARM_DESC(enter_at_start, "enter driver functions at their start, as IBT and kCFI demand (for tests)");

static unsigned long gw_redirect_body(const struct gw_target *target, unsigned long site)
{
	return gw_enter_at_start ? target->func : site + MCOUNT_INSN_SIZE;
}

int gw_redirect_init(void)
{
	BUILD_BUG_ON(GW_SITES < 4 * GW_TARGETS_MAX);
	gw_enter_at_start |= gw_must_enter_at_start();
	gw_text = gw_module_text(THIS_MODULE, &gw_text_bytes);
	return gw_text_bytes ? 0 : -EINVAL;
}

static __always_inline unsigned int gw_site_slot(unsigned long site)
{
	return hash_long(site, ilog2(GW_SITES));
}

/* No consumer reads, but somebody wants to be told of what happens seldom. */
static noinline void notrace gw_redirect_seldom(unsigned long ip, GW_FTRACE_ARG *regs)
{
	const struct gw_site *sites = READ_ONCE(gw_sites);
	unsigned int slot = gw_site_slot(ip);
	struct gw_target *target;

	while (sites[slot].site && sites[slot].site != ip)
		slot = (slot + 1) % GW_SITES;
	if (!sites[slot].site)
		return;
	target = sites[slot].target;
	if (target->op != GPUWATCH_OP_OPEN && target->op != GPUWATCH_OP_RELEASE)
		return;
	gw_ftrace_set_ip(regs, target->wrapper);
	if (!READ_ONCE(target->body))
		WRITE_ONCE(target->body, gw_redirect_body(target, ip));
}

/*
 * Runs before the first instruction of the function. ftrace calls it straight
 * from its trampoline, so it may be preempted.
 */
static void notrace gw_redirect(unsigned long ip, unsigned long parent_ip,
				struct ftrace_ops *ops, GW_FTRACE_ARG *regs)
{
	const struct gw_site *sites;
	struct gw_target *target;
	unsigned int slot;

	if (!gw_consumer_any()) {
		if (unlikely(READ_ONCE(gw_tap_listened)) &&
		    parent_ip - gw_text >= gw_text_bytes)
			gw_redirect_seldom(ip, regs);
		return;
	}
	if (parent_ip - gw_text < gw_text_bytes)
		return;
	sites = READ_ONCE(gw_sites);
	for (slot = gw_site_slot(ip); sites[slot].site; slot = (slot + 1) % GW_SITES) {
		if (likely(sites[slot].site == ip)) {
			target = sites[slot].target;
			gw_ftrace_set_ip(regs, target->wrapper);
			if (unlikely(!READ_ONCE(target->body)))
				WRITE_ONCE(target->body, gw_redirect_body(target, ip));
			return;
		}
	}
}

static struct ftrace_ops gw_redirect_ops = {
	.func = gw_redirect,
	.flags = GW_FTRACE_FLAGS,
};

static void gw_site_set(struct gw_site *sites, unsigned long site, struct gw_target *target)
{
	unsigned int slot = gw_site_slot(site);

	while (sites[slot].site && sites[slot].site != site)
		slot = (slot + 1) % GW_SITES;
	sites[slot].target = target;
	smp_store_release(&sites[slot].site, site); /* callbacks see both or none */
}

static const unsigned long gw_site_offsets[] = { 0, 4 };

/* All that is redirected, into the other table; then that one counts. */
static void gw_sites_rebuild(void)
{
	struct gw_site *other = gw_site_tables[gw_sites == gw_site_tables[0]];
	unsigned int i, j;

	memset(other, 0, sizeof(gw_site_tables[0]));
	for (i = 0; i < GW_TARGETS_MAX; i++)
		if (gw_targets[i].method == GPUWATCH_METHOD_REDIRECT)
			for (j = 0; j < ARRAY_SIZE(gw_site_offsets); j++)
				gw_site_set(other, gw_targets[i].func + gw_site_offsets[j],
					    &gw_targets[i]);
	smp_store_release(&gw_sites, other); /* filled before it is looked into */
	synchronize_rcu_tasks(); /* no callback, preempted or not, is in the old one */
}

/*
 * Where ftrace's call lies: at the start of the function, or behind an ENDBR64
 * (CONFIG_X86_KERNEL_IBT). ftrace refuses an address that is no such place, and
 * one that another IPMODIFY user, a live patch for one, has taken.
 */
static int gw_redirect_filter(struct gw_target *target, bool remove)
{
	int err = -EINVAL;
	unsigned int i;

	/* Both: from v5.18 on ftrace takes the first address for the second. */
	for (i = 0; i < ARRAY_SIZE(gw_site_offsets) && !remove; i++)
		gw_site_set(gw_sites, target->func + gw_site_offsets[i], target);
	for (i = 0; i < ARRAY_SIZE(gw_site_offsets); i++) {
		unsigned long site = target->func + gw_site_offsets[i];

		err = ftrace_set_filter_ip(&gw_redirect_ops, site, remove, 0);
		if (err != -EINVAL)
			break;
	}
	return err;
}

int gw_redirect_set(struct gw_target *target)
{
	int err;

	lockdep_assert_held(&gw_hook_lock);
	err = gw_redirect_filter(target, false);
	if (err)
		return err;
	/* Only with a function in its filter: an empty one stands for all. */
	if (!gw_registered) {
		err = register_ftrace_function(&gw_redirect_ops);
		if (err) {
			gw_redirect_filter(target, true);
			return err;
		}
		gw_registered = true;
	}
	gw_redirects++;
	return 0;
}

void gw_redirect_stop(void)
{
	lockdep_assert_held(&gw_hook_lock);
	if (gw_registered)
		unregister_ftrace_function(&gw_redirect_ops);
	gw_registered = false;
}

/* On return no new call is redirected; calls in flight are counted in flow. */
void gw_redirect_clear(struct gw_target *target)
{
	lockdep_assert_held(&gw_hook_lock);
	if (--gw_redirects == 0)
		gw_redirect_stop();
	gw_redirect_filter(target, true);
	target->method = GPUWATCH_METHOD_NONE;
	if (gw_registered)
		gw_sites_rebuild();
	else if (!gw_redirects)
		memset(gw_site_tables, 0, sizeof(gw_site_tables));
}
