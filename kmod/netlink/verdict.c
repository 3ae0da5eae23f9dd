// SPDX-License-Identifier: GPL-2.0
/*
 * verdict.c - relays verdicts of the daemon to group "verdicts". The kernel
 * adds number, time and who submitted it, which nobody can send himself: the
 * policy refuses those attributes. What a verdict says is not looked at.
 */
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/user_namespace.h>

#include "compat/genl.h"
#include "netlink/netlink.h"

static const u8 gw_verdict_attrs[] = {
	GPUWATCH_A_PID, GPUWATCH_A_START_NS, GPUWATCH_A_CGROUP_ID, GPUWATCH_A_GPU_MINOR,
	GPUWATCH_A_VERDICT, GPUWATCH_A_SEVERITY, GPUWATCH_A_RULE, GPUWATCH_A_DIGEST,
	GPUWATCH_A_TEXT, GPUWATCH_A_CONTAINER,
};

#define GW_VERDICT_BYTES	(256 + GPUWATCH_GENL_RULE_MAX + GPUWATCH_GENL_TEXT_MAX + \
				 GPUWATCH_GENL_CONTAINER_MAX + GPUWATCH_GENL_DIGEST_LEN)

/* Numbers go out in order. */
static DEFINE_MUTEX(gw_verdict_lock);
static u64 gw_verdict_seq;

/* One attribute as it came, aligned and with its NUL: the policy saw to its form. */
static int gw_verdict_copy(struct sk_buff *skb, const struct nlattr *attr)
{
	switch (nla_type(attr)) {
	case GPUWATCH_A_START_NS:
	case GPUWATCH_A_CGROUP_ID:
		return gw_message_put_u64(skb, nla_type(attr), nla_get_u64(attr));
	case GPUWATCH_A_RULE:
	case GPUWATCH_A_TEXT:
	case GPUWATCH_A_CONTAINER:
		return nla_put_string(skb, nla_type(attr), nla_data(attr)); /* to its first NUL */
	default:
		return nla_put(skb, nla_type(attr), nla_len(attr), nla_data(attr));
	}
}

static int gw_verdict_fill(struct sk_buff *skb, struct genl_info *info)
{
	unsigned int i;

	if (nla_put_u32(skb, GPUWATCH_A_SUBMITTER_PID, task_tgid_nr(current)) ||
	    nla_put_u32(skb, GPUWATCH_A_SUBMITTER_UID,
			from_kuid_munged(&init_user_ns, current_uid())))
		return -EMSGSIZE;
	for (i = 0; i < ARRAY_SIZE(gw_verdict_attrs); i++) {
		const struct nlattr *attr = info->attrs[gw_verdict_attrs[i]];

		if (attr && gw_verdict_copy(skb, attr))
			return -EMSGSIZE;
	}
	return 0;
}

int gw_genl_verdict(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *skb;
	void *header;
	int err = gw_genl_privileged(request);

	if (!err)
		err = gw_genl_only(info, gw_verdict_attrs, ARRAY_SIZE(gw_verdict_attrs));
	if (err)
		return err;
	if (!info->attrs[GPUWATCH_A_VERDICT] || !info->attrs[GPUWATCH_A_SEVERITY]) {
		NL_SET_ERR_MSG(info->extack, "a verdict needs GPUWATCH_A_VERDICT and _SEVERITY");
		return -EINVAL;
	}
	if (!gw_genl_listened(GPUWATCH_GROUP_VERDICTS)) {
		mutex_lock(&gw_verdict_lock);
		gw_verdict_seq++;
		mutex_unlock(&gw_verdict_lock);
		return 0;
	}
	skb = gw_message_new(GPUWATCH_CMD_VERDICT, 0, 0, GW_VERDICT_BYTES, &header);
	if (!skb)
		return -ENOMEM;
	mutex_lock(&gw_verdict_lock);
	err = gw_message_put_stamp(skb, gw_verdict_seq + 1, ktime_get_ns(), ktime_get_real_ns());
	if (!err)
		err = gw_verdict_fill(skb, info);
	if (err) {
		nlmsg_free(skb);
	} else {
		gw_verdict_seq++;
		genlmsg_end(skb, header);
		/* Nobody there any more, or a receiver without room: theirs to learn. */
		gw_genl_multicast(&gw_genl_family, skb, GPUWATCH_GROUP_VERDICTS);
	}
	mutex_unlock(&gw_verdict_lock);
	return err;
}

void gw_verdict_heartbeat(void)
{
	if (!gw_genl_listened(GPUWATCH_GROUP_VERDICTS))
		return;
	mutex_lock(&gw_verdict_lock);
	gw_heartbeat_send(GPUWATCH_GROUP_VERDICTS, gw_verdict_seq);
	mutex_unlock(&gw_verdict_lock);
}

u64 gw_verdict_last(void)
{
	u64 last;

	mutex_lock(&gw_verdict_lock);
	last = gw_verdict_seq;
	mutex_unlock(&gw_verdict_lock);
	return last;
}
