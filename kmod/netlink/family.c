// SPDX-License-Identifier: GPL-2.0
/*
 * family.c - the family, its policy and its groups; start and stop. What only
 * the kernel may say is refused in requests, so that it can't be forged.
 */
#include <linux/capability.h>
#include <linux/random.h>
#include <linux/types.h>
#include <linux/kdev_t.h>

#include "compat/genl.h"
#include "netlink/netlink.h"

u64 gw_genl_instance;

/* Not const: older kernels want it so. */
static struct netlink_range_validation gw_range_pid = { .min = 1, .max = S32_MAX };
static struct netlink_range_validation gw_range_timeout = {
	.min = 0, .max = GPUWATCH_GENL_TIMEOUT_MAX_MS,
};

static struct netlink_range_validation gw_range_minor = { .min = 0, .max = MINORMASK };

/* What is not listed is refused. */
static const struct nla_policy gw_genl_policy[GPUWATCH_A_MAX + 1] = {
	[0] = { .strict_start_type = 1 },
	[GPUWATCH_A_PID] = NLA_POLICY_FULL_RANGE(NLA_U32, &gw_range_pid),
	[GPUWATCH_A_START_NS] = { .type = NLA_U64 },
	[GPUWATCH_A_CGROUP_ID] = { .type = NLA_U64 },
	[GPUWATCH_A_GPU_MINOR] = NLA_POLICY_FULL_RANGE(NLA_U32, &gw_range_minor),
	[GPUWATCH_A_VERDICT] = NLA_POLICY_MAX(NLA_U32, GPUWATCH_VERDICT_TAMPERED),
	[GPUWATCH_A_SEVERITY] = NLA_POLICY_RANGE(NLA_U32, GPUWATCH_SEVERITY_INFO,
						 GPUWATCH_SEVERITY_CRITICAL),
	[GPUWATCH_A_RULE] = { .type = NLA_NUL_STRING, .len = GPUWATCH_GENL_RULE_MAX },
	[GPUWATCH_A_DIGEST] = NLA_POLICY_EXACT_LEN(GPUWATCH_GENL_DIGEST_LEN),
	[GPUWATCH_A_TEXT] = { .type = NLA_NUL_STRING, .len = GPUWATCH_GENL_TEXT_MAX },
	[GPUWATCH_A_CONTAINER] = { .type = NLA_NUL_STRING, .len = GPUWATCH_GENL_CONTAINER_MAX },
	[GPUWATCH_A_ATTACH] = NLA_POLICY_MAX(NLA_U32, 1),
	[GPUWATCH_A_TIMEOUT_MS] = NLA_POLICY_FULL_RANGE(NLA_U32, &gw_range_timeout),
};

static const struct genl_small_ops gw_genl_ops[] = {
	{ .cmd = GPUWATCH_CMD_GET, .doit = gw_genl_get },
	{ .cmd = GPUWATCH_CMD_SET, .doit = gw_genl_set },
	{ .cmd = GPUWATCH_CMD_VERDICT, .doit = gw_genl_verdict },
};

static const struct genl_multicast_group gw_genl_groups[] = {
	[GPUWATCH_GROUP_EVENTS] = { .name = GPUWATCH_GENL_GROUP_EVENTS, GW_GENL_GROUP_FLAGS },
	[GPUWATCH_GROUP_VERDICTS] = { .name = GPUWATCH_GENL_GROUP_VERDICTS, GW_GENL_GROUP_FLAGS },
};

/* Not netnsok: there is nothing of it in other network namespaces. */
struct genl_family gw_genl_family __ro_after_init = {
	.name = GPUWATCH_GENL_NAME,
	.version = GPUWATCH_GENL_VERSION,
	.maxattr = GPUWATCH_A_MAX,
	.policy = gw_genl_policy,
	.module = THIS_MODULE,
	.small_ops = gw_genl_ops,
	.n_small_ops = ARRAY_SIZE(gw_genl_ops),
	.mcgrps = gw_genl_groups,
	.n_mcgrps = ARRAY_SIZE(gw_genl_groups),
	/* Or our work, short as it is, would hold up every other family. */
	.parallel_ops = true,
	GW_GENL_RESV_START
};

bool gw_genl_listened(enum gpuwatch_genl_group group)
{
	return genl_has_listeners(&gw_genl_family, &init_net, group) > 0;
}

int gw_genl_privileged(struct sk_buff *skb)
{
	return netlink_capable(skb, CAP_NET_ADMIN) || netlink_capable(skb, CAP_SYS_ADMIN) ?
	       0 : -EPERM;
}

int gw_genl_only(struct genl_info *info, const u8 *allowed, unsigned int nr)
{
	unsigned int type, i;

	for (type = 1; type <= GPUWATCH_A_MAX; type++) {
		if (!info->attrs[type])
			continue;
		for (i = 0; i < nr && allowed[i] != type; i++)
			;
		if (i == nr) {
			NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[type],
					    "attribute has no meaning in this command");
			return -EINVAL;
		}
	}
	return 0;
}

int gw_netlink_init(void)
{
	int err;

	get_random_bytes(&gw_genl_instance, sizeof(gw_genl_instance));
	err = gw_queue_init();
	if (err)
		return err;
	err = genl_register_family(&gw_genl_family);
	if (err)
		goto err_queue_exit;
	err = gw_events_init();
	if (err)
		goto err_unregister;
	return 0;

err_unregister:
	genl_unregister_family(&gw_genl_family);
	gw_genl_set_exit();
err_queue_exit:
	gw_queue_exit();
	return err;
}

void gw_netlink_exit(void)
{
	/* Nothing may be sent to groups that are given up: they may be another's next. */
	gw_events_exit();
	genl_unregister_family(&gw_genl_family);
	gw_genl_set_exit();
	gw_queue_exit();
}
