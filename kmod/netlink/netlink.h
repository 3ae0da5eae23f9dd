/* SPDX-License-Identifier: GPL-2.0 */
/*
 * netlink.h - generic netlink family "gpuwatch". Sends what tap.h tells, relays
 * verdicts, answers requests. It judges nothing, and no traced call waits for
 * it: events wait in a bounded queue for a worker.
 *
 * Locks: the queue's, short and last of all; gw_verdict_lock -> none of ours.
 */
#ifndef GW_NETLINK_H
#define GW_NETLINK_H

#include <linux/skbuff.h>
#include <linux/types.h>
#include <net/genetlink.h>
#include <linux/gpuwatch.h>
#include <linux/gpuwatch_genl.h>

#include "record/tap.h"

#define GW_LOSS_CAUSES	(GPUWATCH_CAUSE_EVENT_MEMORY + 1)

/* family.c */
extern struct genl_family gw_genl_family;
extern u64 gw_genl_instance;

int gw_netlink_init(void);
void gw_netlink_exit(void);
/* Cheap, any context. */
bool gw_genl_listened(enum gpuwatch_genl_group group);
/* -EPERM, or 0 for CAP_NET_ADMIN and CAP_SYS_ADMIN of both opener and sender. */
int gw_genl_privileged(struct sk_buff *skb);
/* -EINVAL when an attribute is there that is not in @allowed. */
int gw_genl_only(struct genl_info *info, const u8 *allowed, unsigned int nr);

/* message.c: parts of messages; the messages' sizes are theirs to know. */
struct sk_buff *gw_message_new(u8 cmd, u32 portid, u32 seq, size_t bytes, void **header);
int gw_message_put_u64(struct sk_buff *skb, int type, u64 value);
int gw_message_put_stamp(struct sk_buff *skb, u64 seq, u64 time_ns, u64 realtime_ns);
int gw_message_put_event(struct sk_buff *skb, const struct gw_tap_event *event);
/* @told: what the counts are relative to; NULL: all of it. */
int gw_message_put_loss(struct sk_buff *skb, const u64 *lost, const u64 *told);

/* queue.c: from any context to the worker. */
int gw_queue_init(void);
void gw_queue_exit(void);
void gw_queue_count(void);			/* a number that nobody gets */
u64 gw_queue_number(void);			/* the next number, for one that is not queued */
bool gw_queue_put(struct gw_tap_event *event);	/* false: full, counted, numbered even so */
/* False: empty, and *last is the last number given out. */
bool gw_queue_get(struct gw_tap_event *event, u64 *last);
u64 gw_queue_dropped(void);
u64 gw_queue_last(void);

/* events.c: the worker of group "events", heartbeats of both. */
int gw_events_init(void);
void gw_events_exit(void);
unsigned int gw_events_heartbeat_ms(void);
u64 gw_events_unsent(void);

/* loss.c: totals by cause since the module was loaded. */
void gw_loss_sum(u64 lost[GW_LOSS_CAUSES]);

/* state.c, set.c, verdict.c: the commands. */
int gw_genl_get(struct sk_buff *skb, struct genl_info *info);
int gw_genl_set(struct sk_buff *skb, struct genl_info *info);
void gw_genl_set_exit(void);
int gw_genl_verdict(struct sk_buff *skb, struct genl_info *info);
void gw_verdict_heartbeat(void);
u64 gw_verdict_last(void);

/* events.c */
/* Has opens and closes looked at, or not, as there are subscribers. May sleep. */
void gw_events_look(void);
void gw_heartbeat_send(enum gpuwatch_genl_group group, u64 seq);

#endif
