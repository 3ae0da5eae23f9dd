/* SPDX-License-Identifier: GPL-2.0 */
/*
 * tap.h - what happens seldom is told to one more listener, beside the rings:
 * opens, closes, images, states. Ioctls and mmaps never come here. The listener
 * is called in the context of the traced call, possibly with preemption off: it
 * must not sleep, and must not call back.
 */
#ifndef GW_TAP_H
#define GW_TAP_H

#include <linux/sched.h>
#include <linux/types.h>
#include <linux/gpuwatch.h>
#include <linux/gpuwatch_genl.h>

struct gw_file_id;

struct gw_tap_event {
	u64 seq;			/* the listener's */
	u64 time_ns;
	u64 realtime_ns;
	u64 start_ns;
	u64 cgroup_id;
	u64 file_id;			/* 0: about no file */
	u64 image_id;
	u64 image_bytes;
	u32 event;			/* enum gpuwatch_genl_event */
	u32 tgid;
	u32 tid;
	u32 uid;
	u32 rdev;
	u32 open_flags;
	u32 value;
	s32 result;
	u16 image_kind;
	u8 node_kind;
	char comm[TASK_COMM_LEN];
	char name[GPUWATCH_NAME_LEN];	/* of a module or a symbol */
};

struct gw_tap {
	/* False: nobody listens, the event needs not be made; it is counted. */
	bool (*begin)(void);
	void (*tell)(struct gw_tap_event *event);
};

/*
 * Whether hooks of opens and releases have to be in for the listener, though no
 * consumer reads: a hint, read before anything else.
 */
extern bool gw_tap_listened;

/* NULL: nobody. Returns when the listener before is not in use any more. */
void gw_tap_set(const struct gw_tap *tap);

void gw_tap_file(enum gpuwatch_genl_event event, const struct gw_file_id *file, s32 result,
		 u32 open_flags);
void gw_tap_image(const struct gpuwatch_rec_image *image);
void gw_tap_state(enum gpuwatch_state state, u32 value, s32 result, const char *name);

#endif
