// SPDX-License-Identifier: GPL-2.0
/* loss.c - what was lost since the module was loaded, by cause, from every room. */
#include "hook/hook.h"
#include "image/image.h"
#include "netlink/netlink.h"
#include "record/consumer.h"
#include "record/stage.h"

void gw_loss_sum(u64 lost[GW_LOSS_CAUSES])
{
	struct gpuwatch_image_status images = {};
	struct gpuwatch_stats rings;
	unsigned int i;

	gw_consumer_sum_stats(&rings);
	gw_image_status(&images);
	lost[GPUWATCH_CAUSE_RING_FULL] = rings.lost[GPUWATCH_LOSS_RING_FULL];
	lost[GPUWATCH_CAUSE_TOO_BIG] = rings.lost[GPUWATCH_LOSS_TOO_BIG];
	lost[GPUWATCH_CAUSE_PROBE_MISSED] = gw_kretprobe_missed();
	lost[GPUWATCH_CAUSE_OVERWRITTEN] = rings.lost[GPUWATCH_LOSS_OVERWRITTEN];
	lost[GPUWATCH_CAUSE_STAGE_EXHAUSTED] = gw_stage_exhausted();
	BUILD_BUG_ON(GPUWATCH_CAUSE_IMAGE_EXPIRED - GPUWATCH_CAUSE_IMAGE_FAULT !=
		     (int)GPUWATCH_IMAGE_LOSS_EXPIRED - (int)GPUWATCH_IMAGE_LOSS_FAULT);
	for (i = GPUWATCH_IMAGE_LOSS_FAULT; i <= GPUWATCH_IMAGE_LOSS_EXPIRED; i++)
		lost[GPUWATCH_CAUSE_IMAGE_FAULT + i] = images.lost[i];
	lost[GPUWATCH_CAUSE_EVENT_QUEUE] = gw_queue_dropped();
	lost[GPUWATCH_CAUSE_EVENT_MEMORY] = gw_events_unsent();
}
