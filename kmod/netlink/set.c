// SPDX-License-Identifier: GPL-2.0
/*
 * set.c - attach and detach. A request of generic netlink holds up the coming
 * and going of every family, and a detach waits for calls in flight: so a worker
 * does that. An attach is done at once, since it has to look for files in the
 * caller's mount namespace, which kernel threads of newer kernels do not share.
 */
#include <linux/mutex.h>
#include <linux/workqueue.h>

#include "compat/genl.h"
#include "hook/hook.h"
#include "netlink/netlink.h"

#define GW_TIMEOUT_DEFAULT_MS	5000

static void gw_set_run(struct work_struct *work);
static DECLARE_WORK(gw_set_work, gw_set_run);
static DEFINE_MUTEX(gw_set_lock);

/* What the worker is to do; under the lock. */
static struct {
	bool busy;
	u32 timeout_ms;
	u32 portid;
	u32 seq;
} gw_set;

static const u8 gw_set_attrs[] = { GPUWATCH_A_ATTACH, GPUWATCH_A_TIMEOUT_MS };

static void gw_set_answer(u32 portid, u32 seq, int result, u32 in_flight)
{
	struct sk_buff *skb;
	void *header;

	skb = gw_message_new(GPUWATCH_CMD_SET, portid, seq, 64, &header);
	if (!skb)
		return; /* who asked sees the state by GET */
	if (nla_put_s32(skb, GPUWATCH_A_RESULT, result) ||
	    nla_put_u32(skb, GPUWATCH_A_IN_FLIGHT, in_flight)) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, header);
	genlmsg_unicast(&init_net, skb, portid);
}

static void gw_set_done(void)
{
	mutex_lock(&gw_set_lock);
	gw_set.busy = false;
	mutex_unlock(&gw_set_lock);
}

static void gw_set_run(struct work_struct *work)
{
	/* Busy: nobody else changes what is asked for. */
	u32 portid = gw_set.portid, seq = gw_set.seq, in_flight = 0;
	int result = gw_hook_detach(gw_set.timeout_ms, &in_flight);

	gw_set_done();
	gw_set_answer(portid, seq, result, in_flight);
}

/* False: another change is under way. */
static bool gw_set_claim(struct genl_info *info, u32 timeout_ms)
{
	bool free;

	mutex_lock(&gw_set_lock);
	free = !gw_set.busy;
	if (free) {
		gw_set.busy = true;
		gw_set.timeout_ms = timeout_ms;
		gw_set.portid = info->snd_portid;
		gw_set.seq = info->snd_seq;
	}
	mutex_unlock(&gw_set_lock);
	return free;
}

int gw_genl_set(struct sk_buff *skb, struct genl_info *info)
{
	const struct nlattr *attach = info->attrs[GPUWATCH_A_ATTACH];
	const struct nlattr *timeout = info->attrs[GPUWATCH_A_TIMEOUT_MS];
	int err = gw_genl_privileged(skb);

	if (!err)
		err = gw_genl_only(info, gw_set_attrs, ARRAY_SIZE(gw_set_attrs));
	if (err)
		return err;
	if (!attach) {
		NL_SET_ERR_MSG(info->extack, "GPUWATCH_A_ATTACH is missing");
		return -EINVAL;
	}
	if (timeout && nla_get_u32(attach)) {
		NL_SET_ERR_MSG(info->extack, "a timeout has a meaning for a detach only");
		return -EINVAL;
	}
	if (!gw_set_claim(info, timeout ? nla_get_u32(timeout) : GW_TIMEOUT_DEFAULT_MS)) {
		NL_SET_ERR_MSG(info->extack, "another attach or detach is under way");
		return -EBUSY;
	}
	if (nla_get_u32(attach)) {
		int result = gw_hook_attach(true);

		gw_set_done();
		gw_set_answer(info->snd_portid, info->snd_seq, result, 0);
	} else {
		queue_work(system_long_wq, &gw_set_work);
	}
	return 0;
}

/* After the family is gone: nobody asks any more. */
void gw_genl_set_exit(void)
{
	cancel_work_sync(&gw_set_work);
}
