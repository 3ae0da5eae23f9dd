// SPDX-License-Identifier: GPL-2.0
/*
 * events.c - the worker that sends what the queue holds, tells of loss, and
 * sends a heartbeat to each group, so that who lost the last message learns it.
 * It may sleep, and gives way to slow receivers; a stuck one loses, alone.
 */
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <linux/workqueue.h>

#include "compat/genl.h"
#include "hook/hook.h"
#include "netlink/netlink.h"

/* Room for attributes: all of an event, and of each cause of loss. */
#define GW_EVENT_BYTES	512
#define GW_LOSS_BYTES	(128 + GW_LOSS_CAUSES * 48)
#define GW_HEARTBEAT_MIN_MS	20U

static unsigned int gw_heartbeat_ms = 1000;
module_param_named(heartbeat_ms, gw_heartbeat_ms, uint, 0644);
MODULE_PARM_DESC(heartbeat_ms, "time between two heartbeats to subscribers of generic netlink");

static void gw_events_drain(struct work_struct *work);
static void gw_events_beat(struct work_struct *work);
static DECLARE_WORK(gw_drain_work, gw_events_drain);
static DECLARE_DELAYED_WORK(gw_beat_work, gw_events_beat);
static struct workqueue_struct *gw_events_wq;	/* one work at a time */

static u64 gw_loss_told[GW_LOSS_CAUSES];	/* of the worker */
static atomic64_t gw_unsent = ATOMIC64_INIT(0);

u64 gw_events_unsent(void)
{
	return atomic64_read(&gw_unsent);
}

unsigned int gw_events_heartbeat_ms(void)
{
	return max(READ_ONCE(gw_heartbeat_ms), GW_HEARTBEAT_MIN_MS);
}

static void gw_event_send(const struct gw_tap_event *event)
{
	struct sk_buff *skb;
	void *header;

	skb = gw_message_new(GPUWATCH_CMD_EVENT, 0, 0, GW_EVENT_BYTES, &header);
	if (!skb || gw_message_put_event(skb, event)) {
		nlmsg_free(skb);
		atomic64_inc(&gw_unsent);
		return;
	}
	genlmsg_end(skb, header);
	gw_genl_multicast(&gw_genl_family, skb, GPUWATCH_GROUP_EVENTS);
}

/* Sends all there is; returns the number of the last. */
static u64 gw_events_send_all(void)
{
	struct gw_tap_event event;
	u64 last;

	while (gw_queue_get(&event, &last))
		gw_event_send(&event);
	return last;
}

static void gw_events_drain(struct work_struct *work)
{
	gw_events_send_all();
}

static bool gw_loss_grew(const u64 *lost)
{
	unsigned int cause;

	for (cause = 0; cause < GW_LOSS_CAUSES; cause++)
		if (cause != GPUWATCH_CAUSE_OVERWRITTEN && lost[cause] != gw_loss_told[cause])
			return true;
	return false;
}

static void gw_loss_send(bool listened)
{
	u64 lost[GW_LOSS_CAUSES];
	struct sk_buff *skb;
	void *header;

	gw_loss_sum(lost);
	gw_loss_told[GPUWATCH_CAUSE_OVERWRITTEN] = lost[GPUWATCH_CAUSE_OVERWRITTEN];
	if (listened && gw_loss_grew(lost)) {
		skb = gw_message_new(GPUWATCH_CMD_EVENT, 0, 0, GW_LOSS_BYTES, &header);
		if (!skb)
			return; /* told next time */
		if (gw_message_put_stamp(skb, gw_queue_number(), ktime_get_ns(),
					 ktime_get_real_ns()) ||
		    nla_put_u32(skb, GPUWATCH_A_EVENT, GPUWATCH_EVENT_LOSS) ||
		    gw_message_put_loss(skb, lost, gw_loss_told)) {
			WARN_ON_ONCE(1); /* GW_LOSS_BYTES is too small */
			nlmsg_free(skb);
			return;
		}
		genlmsg_end(skb, header);
		gw_genl_multicast(&gw_genl_family, skb, GPUWATCH_GROUP_EVENTS);
	}
	memcpy(gw_loss_told, lost, sizeof(gw_loss_told));
}

void gw_heartbeat_send(enum gpuwatch_genl_group group, u64 seq)
{
	struct sk_buff *skb;
	void *header;

	skb = gw_message_new(GPUWATCH_CMD_HEARTBEAT, 0, 0, 128, &header);
	if (!skb)
		return;
	if (gw_message_put_stamp(skb, seq, ktime_get_ns(), ktime_get_real_ns()) ||
	    nla_put_u32(skb, GPUWATCH_A_GROUP, group) ||
	    nla_put_u32(skb, GPUWATCH_A_HEARTBEAT_MS, gw_events_heartbeat_ms())) {
		nlmsg_free(skb);
		return;
	}
	genlmsg_end(skb, header);
	gw_genl_multicast(&gw_genl_family, skb, group);
}

/*
 * A join can't be seen on older kernels: so a look with each heartbeat, and with
 * each GET, by which a subscriber can have it at once.
 */
void gw_events_look(void)
{
	bool listened = gw_genl_listened(GPUWATCH_GROUP_EVENTS);

	if (READ_ONCE(gw_tap_listened) == listened)
		return;
	WRITE_ONCE(gw_tap_listened, listened);
	/* Files that were opened while nobody looked. */
	if (listened)
		gw_discover_later();
}

static void gw_beat_once(void)
{
	bool listened = gw_genl_listened(GPUWATCH_GROUP_EVENTS);

	gw_events_look();

	gw_events_send_all();
	gw_loss_send(listened);
	/* Whatever got a number up to here has been sent, or will never be. */
	if (listened)
		gw_heartbeat_send(GPUWATCH_GROUP_EVENTS, gw_events_send_all());
	gw_verdict_heartbeat();
}

static void gw_events_beat(struct work_struct *work)
{
	gw_beat_once();
	queue_delayed_work(gw_events_wq, &gw_beat_work,
			   msecs_to_jiffies(gw_events_heartbeat_ms()));
}

static bool gw_events_begin(void)
{
	if (gw_genl_listened(GPUWATCH_GROUP_EVENTS))
		return true;
	gw_queue_count();
	return false;
}

static void gw_events_tell(struct gw_tap_event *event)
{
	if (gw_queue_put(event))
		queue_work(gw_events_wq, &gw_drain_work);
}

static const struct gw_tap gw_events_tap = { .begin = gw_events_begin, .tell = gw_events_tell };

int gw_events_init(void)
{
	gw_events_wq = alloc_ordered_workqueue("gpuwatch_events", 0);
	if (!gw_events_wq)
		return -ENOMEM;
	queue_delayed_work(gw_events_wq, &gw_beat_work, 0);
	gw_tap_set(&gw_events_tap);
	return 0;
}

void gw_events_exit(void)
{
	gw_tap_set(NULL);
	WRITE_ONCE(gw_tap_listened, false);
	cancel_delayed_work_sync(&gw_beat_work);
	cancel_work_sync(&gw_drain_work);
	destroy_workqueue(gw_events_wq);
	/* A last word, with the last numbers. */
	if (gw_genl_listened(GPUWATCH_GROUP_EVENTS))
		gw_heartbeat_send(GPUWATCH_GROUP_EVENTS, gw_events_send_all());
	gw_verdict_heartbeat();
}
