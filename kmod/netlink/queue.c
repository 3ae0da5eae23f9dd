// SPDX-License-Identifier: GPL-2.0
/*
 * queue.c - events on their way from a traced call to the worker, and the
 * numbers of group "events". Full means dropped: its number stays unused, which
 * is how subscribers learn of it.
 */
#include <linux/mm.h>
#include <linux/spinlock.h>

#include "netlink/netlink.h"

#define GW_QUEUE_EVENTS	2048U	/* a power of two */

static DEFINE_RAW_SPINLOCK(gw_queue_lock);
static struct gw_tap_event *gw_queue;
static u32 gw_queue_head, gw_queue_tail;	/* all under the lock */
static u64 gw_queue_seq;
static u64 gw_queue_full;

int gw_queue_init(void)
{
	gw_queue = kvcalloc(GW_QUEUE_EVENTS, sizeof(*gw_queue), GFP_KERNEL);
	return gw_queue ? 0 : -ENOMEM;
}

void gw_queue_exit(void)
{
	kvfree(gw_queue);
}

u64 gw_queue_number(void)
{
	unsigned long flags;
	u64 seq;

	raw_spin_lock_irqsave(&gw_queue_lock, flags);
	seq = ++gw_queue_seq;
	raw_spin_unlock_irqrestore(&gw_queue_lock, flags);
	return seq;
}

void gw_queue_count(void)
{
	gw_queue_number();
}

bool gw_queue_put(struct gw_tap_event *event)
{
	unsigned long flags;
	bool room;

	raw_spin_lock_irqsave(&gw_queue_lock, flags);
	event->seq = ++gw_queue_seq;
	room = gw_queue_head - gw_queue_tail < GW_QUEUE_EVENTS;
	if (room)
		gw_queue[gw_queue_head++ % GW_QUEUE_EVENTS] = *event;
	else
		gw_queue_full++;
	raw_spin_unlock_irqrestore(&gw_queue_lock, flags);
	return room;
}

bool gw_queue_get(struct gw_tap_event *event, u64 *last)
{
	unsigned long flags;
	bool any;

	raw_spin_lock_irqsave(&gw_queue_lock, flags);
	any = gw_queue_head != gw_queue_tail;
	if (any)
		*event = gw_queue[gw_queue_tail++ % GW_QUEUE_EVENTS];
	*last = gw_queue_seq;
	raw_spin_unlock_irqrestore(&gw_queue_lock, flags);
	return any;
}

u64 gw_queue_dropped(void)
{
	unsigned long flags;
	u64 dropped;

	raw_spin_lock_irqsave(&gw_queue_lock, flags);
	dropped = gw_queue_full;
	raw_spin_unlock_irqrestore(&gw_queue_lock, flags);
	return dropped;
}

u64 gw_queue_last(void)
{
	unsigned long flags;
	u64 last;

	raw_spin_lock_irqsave(&gw_queue_lock, flags);
	last = gw_queue_seq;
	raw_spin_unlock_irqrestore(&gw_queue_lock, flags);
	return last;
}
