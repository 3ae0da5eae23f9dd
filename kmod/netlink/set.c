// SPDX-License-Identifier: GPL-2.0
/*
 * set.c - attach and detach. Both may take long, and a request of generic
 * netlink holds up the coming and going of every family: so a worker does it,
 * and answers the one who asked when it is done.
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
	bool attach;
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

static void gw_set_run(struct work_struct *work)
{
	u32 portid = gw_set.portid, seq = gw_set.seq, in_flight = 0;
	int result;

	/* Busy: nobody else changes what is asked for. */
	if (gw_set.attach)
		result = gw_hook_attach(true);
	else
		result = gw_hook_detach(gw_set.timeout_ms, &in_flight);
	mutex_lock(&gw_set_lock);
	gw_set.busy = false;
	mutex_unlock(&gw_set_lock);
	gw_set_answer(portid, seq, result, in_flight);
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
	mutex_lock(&gw_set_lock);
	if (gw_set.busy) {
		NL_SET_ERR_MSG(info->extack, "another attach or detach is under way");
		err = -EBUSY;
	} else {
		gw_set.busy = true;
		gw_set.attach = nla_get_u32(attach);
		gw_set.timeout_ms = timeout ? nla_get_u32(timeout) : GW_TIMEOUT_DEFAULT_MS;
		gw_set.portid = info->snd_portid;
		gw_set.seq = info->snd_seq;
		queue_work(system_long_wq, &gw_set_work);
	}
	mutex_unlock(&gw_set_lock);
	return err;
}

/* After the family is gone: nobody asks any more. */
void gw_genl_set_exit(void)
{
	cancel_work_sync(&gw_set_work);
}
