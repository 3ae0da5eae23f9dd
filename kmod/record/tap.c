// SPDX-License-Identifier: GPL-2.0
/*
 * tap.c - makes events of the caller and what it did. Nothing is made while
 * nobody listens.
 */
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "record/identity.h"
#include "record/record.h"
#include "record/tap.h"

static const struct gw_tap __rcu *gw_tap;
bool gw_tap_listened __read_mostly;

void gw_tap_set(const struct gw_tap *tap)
{
	rcu_assign_pointer(gw_tap, tap);
	if (!tap)
		synchronize_rcu();
}

/* The listener, when an event is to be made; under RCU. */
static const struct gw_tap *gw_tap_begin(void)
{
	const struct gw_tap *tap = rcu_dereference(gw_tap);

	return tap && tap->begin() ? tap : NULL;
}

static void gw_tap_who(struct gw_tap_event *event)
{
	u16 flags = 0;

	event->time_ns = ktime_get_ns();
	event->realtime_ns = ktime_get_real_ns();
	event->tgid = current->tgid;
	event->tid = current->pid;
	event->uid = __kuid_val(current_uid());
	event->start_ns = current->group_leader->start_boottime;
	event->cgroup_id = cgroup_id(gw_identity_cgroup(&flags));
	/* Another thread may be changing it: any mix of old and new, with an end. */
	memcpy(event->comm, current->comm, sizeof(event->comm) - 1);
}

void gw_tap_file(enum gpuwatch_genl_event what, const struct gw_file_id *file, s32 result,
		 u32 open_flags)
{
	const struct gw_tap *tap;

	rcu_read_lock();
	tap = gw_tap_begin();
	if (tap) {
		struct gw_tap_event event = {
			.event = what,
			.file_id = file->file_id,
			.rdev = file->rdev,
			.node_kind = file->kind,
			.result = result,
			.open_flags = open_flags,
		};

		gw_tap_who(&event);
		tap->tell(&event);
	}
	rcu_read_unlock();
}

void gw_tap_image(const struct gpuwatch_rec_image *image)
{
	const struct gw_tap *tap;

	rcu_read_lock();
	tap = gw_tap_begin();
	if (tap) {
		struct gw_tap_event event = {
			.event = GPUWATCH_EVENT_IMAGE,
			.image_id = image->id,
			.image_bytes = image->bytes,
			.image_kind = image->kind,
		};

		BUILD_BUG_ON(sizeof(image->symbol) > sizeof(event.name));
		strscpy(event.name, image->symbol, sizeof(image->symbol));
		gw_tap_who(&event);
		tap->tell(&event);
	}
	rcu_read_unlock();
}

/* 0: not told. */
static u32 gw_tap_state_event(enum gpuwatch_state state)
{
	switch (state) {
	case GPUWATCH_STATE_ATTACHED:
		return GPUWATCH_EVENT_ATTACHED;
	case GPUWATCH_STATE_DETACHED:
		return GPUWATCH_EVENT_DETACHED;
	case GPUWATCH_STATE_DRIVER_LIVE:
		return GPUWATCH_EVENT_DRIVER_LIVE;
	case GPUWATCH_STATE_DRIVER_GOING:
		return GPUWATCH_EVENT_DRIVER_GOING;
	case GPUWATCH_STATE_HOOKED:
		return GPUWATCH_EVENT_HOOKED;
	case GPUWATCH_STATE_HOOK_FAILED:
		return GPUWATCH_EVENT_HOOK_FAILED;
	case GPUWATCH_STATE_PLAN:
		return GPUWATCH_EVENT_PLAN;
	}
	return 0;
}

void gw_tap_state(enum gpuwatch_state state, u32 value, s32 result, const char *name)
{
	const struct gw_tap *tap;

	rcu_read_lock();
	tap = gw_tap_begin();
	if (tap) {
		struct gw_tap_event event = {
			.event = gw_tap_state_event(state),
			.value = value,
			.result = result,
		};

		strscpy(event.name, name, sizeof(event.name));
		gw_tap_who(&event);
		tap->tell(&event);
	}
	rcu_read_unlock();
}
