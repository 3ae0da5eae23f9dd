// SPDX-License-Identifier: GPL-2.0
/*
 * attach.c - when hooks are in. A consumer attaches them by enabling itself,
 * and they go when the last one is gone; GPUWATCH_IOC_ATTACH keeps them until
 * GPUWATCH_IOC_DETACH.
 *
 * The module holds a reference to itself from attach until no call is left in
 * a wrapper, so that rmmod says EBUSY rather than wait for the driver.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>

#include "hook/hook.h"
#include "record/clock.h"
#include "record/consumer.h"
#include "record/plan.h"
#include "record/record.h"
#include "record/stage.h"

#define GW_DRAIN_RETRY	msecs_to_jiffies(100)

/* All under gw_hook_lock. */
static bool gw_attached;	/* hooks are in */
static bool gw_draining;	/* hooks are out, calls may be in flight */
static bool gw_pinned;		/* by GPUWATCH_IOC_ATTACH */
static bool gw_told;		/* that hooks went in, and not yet that they are out */

static void gw_hook_idle(struct work_struct *work);
static DECLARE_DELAYED_WORK(gw_idle_work, gw_hook_idle);

bool gw_hook_attached(void)
{
	return gw_attached;
}

/* Gives the module's reference back; what is left of it ends in gw_hook_exit(). */
static void gw_hook_drained(void)
{
	unsigned int i;

	for (i = 0; i < GW_TARGETS_MAX; i++)
		gw_targets[i].func = 0;
	gw_discover_forget();
	gw_draining = false;
	if (gw_told)
		gw_record_state(GPUWATCH_STATE_DETACHED, 0, 0, "");
	gw_told = false;
	module_put(THIS_MODULE);
}

/* True when no call is in a wrapper, nor about to enter or on its way out. */
static bool gw_hook_quiet(void)
{
	/* Those whose instruction pointer was changed have counted themselves. */
	synchronize_rcu_tasks();
	if (gw_target_in_flight())
		return false;
	/* Those that counted themselves out have left our text. */
	synchronize_rcu_tasks();
	return true;
}

int gw_hook_attach(bool pin)
{
	int err = 0;

	mutex_lock(&gw_hook_lock);
	if (!gw_attached) {
		if (!gw_draining && !try_module_get(THIS_MODULE)) {
			err = -ENODEV;
			goto out_unlock;
		}
		gw_clock_choose();
		gw_attached = true;
		err = gw_discover_start();
		if (err) {
			gw_attached = false;
			gw_draining = true;
			gw_target_unhook_all();
			schedule_delayed_work(&gw_idle_work, 0);
			goto out_unlock;
		}
		gw_draining = false;
		gw_told = true;
		gw_record_state(GPUWATCH_STATE_ATTACHED, gw_target_count(), 0, "");
	} else {
		/* Opens that nobody wanted to hear of were not looked at. */
		gw_discover_later();
	}
	gw_pinned |= pin;
out_unlock:
	mutex_unlock(&gw_hook_lock);
	return err;
}

/* Takes the hooks out; does not wait for calls in flight. */
static void gw_hook_take_out(void)
{
	if (!gw_attached)
		return;
	gw_target_unhook_all();
	gw_attached = false;
	gw_draining = true;
}

int gw_hook_detach(unsigned int timeout_ms, u32 *in_flight)
{
	unsigned long end = jiffies + msecs_to_jiffies(timeout_ms);
	int err = 0;

	*in_flight = 0;
	mutex_lock(&gw_hook_lock);
	gw_pinned = false;
	gw_hook_take_out();
	while (gw_draining) {
		if (gw_hook_quiet()) {
			gw_hook_drained();
			break;
		}
		if (time_after_eq(jiffies, end)) {
			*in_flight = gw_target_in_flight();
			err = -EBUSY;
			schedule_delayed_work(&gw_idle_work, GW_DRAIN_RETRY);
			break;
		}
		/* Others, a newly opened node for one, must not wait for us. */
		mutex_unlock(&gw_hook_lock);
		if (msleep_interruptible(10)) {
			schedule_delayed_work(&gw_idle_work, GW_DRAIN_RETRY);
			return -EINTR;
		}
		mutex_lock(&gw_hook_lock);
	}
	mutex_unlock(&gw_hook_lock);
	return err;
}

static void gw_hook_idle(struct work_struct *work)
{
	mutex_lock(&gw_hook_lock);
	if (!gw_pinned && !gw_consumer_any())
		gw_hook_take_out();
	if (gw_draining) {
		if (gw_hook_quiet())
			gw_hook_drained();
		else
			schedule_delayed_work(&gw_idle_work, GW_DRAIN_RETRY);
	}
	mutex_unlock(&gw_hook_lock);
}

void gw_hook_consumer_gone(void)
{
	mod_delayed_work(system_wq, &gw_idle_work, 0);
}

void gw_hook_info(struct gpuwatch_info *info)
{
	*info = (struct gpuwatch_info) {
		.abi_major = GPUWATCH_ABI_MAJOR,
		.abi_minor = GPUWATCH_ABI_MINOR,
		.schema = GPUWATCH_SCHEMA,
		.features = GPUWATCH_FEAT_REDIRECT | GPUWATCH_FEAT_KRETPROBE |
			    GPUWATCH_FEAT_CGROUP_V2 |
			    (IS_ENABLED(CONFIG_UPROBES) ? GPUWATCH_FEAT_IMAGES : 0) |
			    (IS_ENABLED(CONFIG_MEMCG) ? GPUWATCH_FEAT_CGROUP_V1 : 0),
		.nr_cpus = nr_cpu_ids,
		.nr_consumers = READ_ONCE(gw_consumer_nr),
		.plan_generation = gw_plan_generation(),
		.stage_exhausted = gw_stage_exhausted(),
		.release = GW_VERSION,
	};
	mutex_lock(&gw_hook_lock);
	info->nr_targets = gw_target_count();
	info->attached = gw_attached;
	info->pinned = gw_pinned;
	mutex_unlock(&gw_hook_lock);
	info->in_flight = gw_target_in_flight();
	info->probe_missed = gw_kretprobe_missed();
}

int gw_hook_init(void)
{
	int err = gw_redirect_init();

	if (err)
		return err;
	gw_target_init();
	return gw_discover_init();
}

/* Nothing is attached: the module's reference saw to that. */
void gw_hook_exit(void)
{
	gw_discover_exit();
	cancel_delayed_work_sync(&gw_idle_work);
}
