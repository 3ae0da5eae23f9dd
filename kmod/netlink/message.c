// SPDX-License-Identifier: GPL-2.0
/* message.c - parts of messages. Strings end with NUL and inside their bounds. */
#include <linux/types.h>
#include <linux/kdev_t.h>

#include "netlink/netlink.h"

struct sk_buff *gw_message_new(u8 cmd, u32 portid, u32 seq, size_t bytes, void **header)
{
	struct sk_buff *skb = genlmsg_new(bytes, GFP_KERNEL);

	if (!skb)
		return NULL;
	*header = genlmsg_put(skb, portid, seq, &gw_genl_family, 0, cmd);
	if (*header)
		return skb;
	nlmsg_free(skb);
	return NULL;
}

int gw_message_put_u64(struct sk_buff *skb, int type, u64 value)
{
	return nla_put_u64_64bit(skb, type, value, GPUWATCH_A_PAD);
}

int gw_message_put_stamp(struct sk_buff *skb, u64 seq, u64 time_ns, u64 realtime_ns)
{
	return gw_message_put_u64(skb, GPUWATCH_A_SEQ, seq) ||
	       gw_message_put_u64(skb, GPUWATCH_A_TIME_NS, time_ns) ||
	       gw_message_put_u64(skb, GPUWATCH_A_REALTIME_NS, realtime_ns) ||
	       gw_message_put_u64(skb, GPUWATCH_A_INSTANCE, gw_genl_instance) ? -EMSGSIZE : 0;
}

static int gw_put_who(struct sk_buff *skb, const struct gw_tap_event *event)
{
	return nla_put_u32(skb, GPUWATCH_A_PID, event->tgid) ||
	       nla_put_u32(skb, GPUWATCH_A_TID, event->tid) ||
	       nla_put_u32(skb, GPUWATCH_A_UID, event->uid) ||
	       gw_message_put_u64(skb, GPUWATCH_A_START_NS, event->start_ns) ||
	       gw_message_put_u64(skb, GPUWATCH_A_CGROUP_ID, event->cgroup_id) ||
	       nla_put_string(skb, GPUWATCH_A_COMM, event->comm) ? -EMSGSIZE : 0;
}

static int gw_put_file(struct sk_buff *skb, const struct gw_tap_event *event)
{
	if (nla_put_u32(skb, GPUWATCH_A_NODE_KIND, event->node_kind) ||
	    nla_put_u32(skb, GPUWATCH_A_RDEV, event->rdev) ||
	    gw_message_put_u64(skb, GPUWATCH_A_FILE_ID, event->file_id))
		return -EMSGSIZE;
	if (event->node_kind == GPUWATCH_NODE_GPU &&
	    nla_put_u32(skb, GPUWATCH_A_GPU_MINOR, MINOR(event->rdev)))
		return -EMSGSIZE;
	if (event->event != GPUWATCH_EVENT_OPEN)
		return 0;
	return nla_put_s32(skb, GPUWATCH_A_RESULT, event->result) ||
	       nla_put_u32(skb, GPUWATCH_A_OPEN_FLAGS, event->open_flags) ? -EMSGSIZE : 0;
}

static int gw_put_image(struct sk_buff *skb, const struct gw_tap_event *event)
{
	return gw_message_put_u64(skb, GPUWATCH_A_IMAGE_ID, event->image_id) ||
	       gw_message_put_u64(skb, GPUWATCH_A_IMAGE_BYTES, event->image_bytes) ||
	       nla_put_u32(skb, GPUWATCH_A_IMAGE_KIND, event->image_kind) ||
	       nla_put_string(skb, GPUWATCH_A_SYMBOL, event->name) ? -EMSGSIZE : 0;
}

static int gw_put_state(struct sk_buff *skb, const struct gw_tap_event *event)
{
	if (nla_put_u32(skb, GPUWATCH_A_VALUE, event->value) ||
	    nla_put_s32(skb, GPUWATCH_A_RESULT, event->result))
		return -EMSGSIZE;
	return event->name[0] ? nla_put_string(skb, GPUWATCH_A_MODULE, event->name) : 0;
}

int gw_message_put_event(struct sk_buff *skb, const struct gw_tap_event *event)
{
	if (gw_message_put_stamp(skb, event->seq, event->time_ns, event->realtime_ns) ||
	    nla_put_u32(skb, GPUWATCH_A_EVENT, event->event) || gw_put_who(skb, event))
		return -EMSGSIZE;
	switch (event->event) {
	case GPUWATCH_EVENT_OPEN:
	case GPUWATCH_EVENT_CLOSE:
		return gw_put_file(skb, event);
	case GPUWATCH_EVENT_IMAGE:
		return gw_put_image(skb, event);
	default:
		return gw_put_state(skb, event);
	}
}

static int gw_put_cause(struct sk_buff *skb, u32 cause, u64 count, u64 total)
{
	struct nlattr *nest = nla_nest_start(skb, GPUWATCH_A_LOSS);

	if (!nest || nla_put_u32(skb, GPUWATCH_A_LOSS_CAUSE, cause) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_LOSS_COUNT, count, GPUWATCH_A_LOSS_PAD) ||
	    nla_put_u64_64bit(skb, GPUWATCH_A_LOSS_TOTAL, total, GPUWATCH_A_LOSS_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

int gw_message_put_loss(struct sk_buff *skb, const u64 *lost, const u64 *told)
{
	unsigned int cause;

	for (cause = 0; cause < GW_LOSS_CAUSES; cause++) {
		u64 count = lost[cause] - (told ? told[cause] : 0);

		/* An event names what changed, the state names all. */
		if (told && !count)
			continue;
		if (gw_put_cause(skb, cause, count, lost[cause]))
			return -EMSGSIZE;
	}
	return 0;
}
