// SPDX-License-Identifier: GPL-2.0
/* state.c - the answer to GET: what the module does and did, in numbers. */
#include <linux/capability.h>
#include <linux/string.h>

#include "compat/genl.h"
#include "hook/hook.h"
#include "image/image.h"
#include "netlink/netlink.h"
#include "record/consumer.h"

/* Room for attributes: all but hooks and drivers, and for one of each. */
#define GW_STATE_BYTES	2048
#define GW_HOOK_BYTES	160
#define GW_DRIVERS_MAX	16

struct gw_driver_sum {
	const char *name;
	u32 known;
	u32 hooked;
};

/* What is collected before there is a message, since that may need locks. */
struct gw_state {
	struct gpuwatch_info info;
	struct gpuwatch_stats rings;
	struct gpuwatch_image_status images;
	u64 lost[GW_LOSS_CAUSES];
	unsigned int nr_targets;
	struct gpuwatch_target targets[GW_TARGETS_MAX];
};

static struct gw_state *gw_state_collect(void)
{
	struct gw_state *state = kvzalloc(sizeof(*state), GFP_KERNEL);
	unsigned int i;

	if (!state)
		return NULL;
	gw_events_look();
	gw_hook_info(&state->info);
	gw_consumer_sum_stats(&state->rings);
	gw_image_status(&state->images);
	gw_loss_sum(state->lost);
	for (i = 0; i < GW_TARGETS_MAX; i++) {
		state->targets[i].index = i;
		if (gw_target_get(&state->targets[i]))
			break;
	}
	state->nr_targets = i;
	return state;
}

static int gw_put_info(struct sk_buff *skb, const struct gpuwatch_info *info)
{
	return gw_message_put_u64(skb, GPUWATCH_A_INSTANCE, gw_genl_instance) ||
	       nla_put_u32(skb, GPUWATCH_A_ABI_MAJOR, info->abi_major) ||
	       nla_put_u32(skb, GPUWATCH_A_ABI_MINOR, info->abi_minor) ||
	       nla_put_u32(skb, GPUWATCH_A_SCHEMA, info->schema) ||
	       nla_put_string(skb, GPUWATCH_A_RELEASE, info->release) ||
	       gw_message_put_u64(skb, GPUWATCH_A_FEATURES, info->features) ||
	       nla_put_u32(skb, GPUWATCH_A_ATTACHED, info->attached) ||
	       nla_put_u32(skb, GPUWATCH_A_PINNED, info->pinned) ||
	       nla_put_u32(skb, GPUWATCH_A_CONSUMERS, info->nr_consumers) ||
	       nla_put_u32(skb, GPUWATCH_A_IN_FLIGHT, info->in_flight) ||
	       nla_put_u32(skb, GPUWATCH_A_PLAN, info->plan_generation) ||
	       nla_put_u32(skb, GPUWATCH_A_HEARTBEAT_MS, gw_events_heartbeat_ms()) ?
	       -EMSGSIZE : 0;
}

static int gw_put_stream(struct sk_buff *skb, enum gpuwatch_genl_group group, u64 seq)
{
	struct nlattr *nest = nla_nest_start(skb, GPUWATCH_A_STREAM);

	if (!nest || nla_put_u32(skb, GPUWATCH_A_STREAM_GROUP, group) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_STREAM_SEQ, seq, GPUWATCH_A_STREAM_PAD) ||
	    nla_put_u32(skb, GPUWATCH_A_STREAM_LISTENED, gw_genl_listened(group)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int gw_put_rings(struct sk_buff *skb, const struct gpuwatch_stats *rings)
{
	struct nlattr *nest = nla_nest_start(skb, GPUWATCH_A_RINGS);
	const int pad = GPUWATCH_A_RINGS_PAD;

	if (!nest || nla_put_u64_64bit(skb, GPUWATCH_A_RINGS_RECORDS, rings->records, pad) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_RINGS_OFFERED, rings->seq, pad) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_RINGS_BYTES, rings->bytes, pad) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_RINGS_WAKEUPS, rings->wakeups, pad))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int gw_put_images(struct sk_buff *skb, const struct gpuwatch_image_status *images)
{
	struct nlattr *nest = nla_nest_start(skb, GPUWATCH_A_IMAGES);
	const int pad = GPUWATCH_A_IMAGES_PAD;

	if (!nest || nla_put_u32(skb, GPUWATCH_A_IMAGES_PROBES, images->nr_probes) ||
	    nla_put_u32(skb, GPUWATCH_A_IMAGES_KEPT, images->nr_stored) ||
	    nla_put_u32(skb, GPUWATCH_A_IMAGES_PENDING, images->pending) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_IMAGES_USED_BYTES, images->used_bytes, pad) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_IMAGES_TOTAL_MAX, images->total_max_bytes, pad) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_IMAGES_HITS, images->hits, pad) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_IMAGES_STORED, images->stored, pad) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_IMAGES_STORED_BYTES, images->stored_bytes, pad))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int gw_put_hook(struct sk_buff *skb, const struct gpuwatch_target *target)
{
	struct nlattr *nest = nla_nest_start(skb, GPUWATCH_A_HOOK);
	const int pad = GPUWATCH_A_HOOK_PAD;

	if (!nest || nla_put_string(skb, GPUWATCH_A_HOOK_MODULE, target->module) ||
	    nla_put_u32(skb, GPUWATCH_A_HOOK_OP, target->op) ||
	    nla_put_u32(skb, GPUWATCH_A_HOOK_METHOD, target->method) ||
	    nla_put_s32(skb, GPUWATCH_A_HOOK_ERROR, target->error) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_HOOK_CALLS, target->calls, pad) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_HOOK_IN_FLIGHT, target->in_flight, pad))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static unsigned int gw_sum_drivers(const struct gw_state *state, struct gw_driver_sum *sums)
{
	unsigned int nr = 0, i, at;

	for (i = 0; i < state->nr_targets; i++) {
		const struct gpuwatch_target *target = &state->targets[i];

		if (!strcmp(target->module, "kernel"))
			continue; /* the hook that discovers opens */
		for (at = 0; at < nr && strcmp(sums[at].name, target->module); at++)
			;
		if (at == GW_DRIVERS_MAX)
			continue;
		if (at == nr)
			sums[nr++] = (struct gw_driver_sum) { .name = target->module };
		sums[at].known++;
		sums[at].hooked += target->method != GPUWATCH_METHOD_NONE;
	}
	return nr;
}

static int gw_put_targets(struct sk_buff *skb, const struct gw_state *state)
{
	struct gw_driver_sum sums[GW_DRIVERS_MAX];
	unsigned int nr = gw_sum_drivers(state, sums), i;

	for (i = 0; i < nr; i++) {
		struct nlattr *nest = nla_nest_start(skb, GPUWATCH_A_DRIVER);

		if (!nest || nla_put_string(skb, GPUWATCH_A_DRIVER_MODULE, sums[i].name) ||
		    nla_put_u32(skb, GPUWATCH_A_DRIVER_KNOWN, sums[i].known) ||
		    nla_put_u32(skb, GPUWATCH_A_DRIVER_HOOKED, sums[i].hooked))
			return -EMSGSIZE;
		nla_nest_end(skb, nest);
	}
	for (i = 0; i < state->nr_targets; i++)
		if (gw_put_hook(skb, &state->targets[i]))
			return -EMSGSIZE;
	return 0;
}

static int gw_put_state(struct sk_buff *skb, const struct gw_state *state)
{
	return gw_put_info(skb, &state->info) ||
	       gw_put_stream(skb, GPUWATCH_GROUP_EVENTS, gw_queue_last()) ||
	       gw_put_stream(skb, GPUWATCH_GROUP_VERDICTS, gw_verdict_last()) ||
	       gw_put_rings(skb, &state->rings) || gw_put_images(skb, &state->images) ||
	       gw_message_put_loss(skb, state->lost, NULL) ||
	       gw_put_targets(skb, state) ? -EMSGSIZE : 0;
}

int gw_genl_get(struct sk_buff *request, struct genl_info *info)
{
	struct gw_state *state;
	struct sk_buff *skb;
	void *header;
	int err;

	/* What reading the node wants is enough for numbers. */
	if (gw_genl_privileged(request) && !netlink_capable(request, CAP_PERFMON))
		return -EPERM;
	err = gw_genl_only(info, NULL, 0);
	if (err)
		return err;
	state = gw_state_collect();
	if (!state)
		return -ENOMEM;
	skb = gw_message_new(GPUWATCH_CMD_GET, info->snd_portid, info->snd_seq,
			     GW_STATE_BYTES + (state->nr_targets + GW_DRIVERS_MAX) * GW_HOOK_BYTES,
			     &header);
	if (!skb) {
		err = -ENOMEM;
		goto out_free_state;
	}
	err = gw_put_state(skb, state);
	if (WARN_ON_ONCE(err)) { /* GW_STATE_BYTES or GW_HOOK_BYTES is too small */
		nlmsg_free(skb);
		goto out_free_state;
	}
	genlmsg_end(skb, header);
	err = genlmsg_reply(skb, info);
out_free_state:
	kvfree(state);
	return err;
}
