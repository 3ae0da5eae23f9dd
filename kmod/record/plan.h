/* SPDX-License-Identifier: GPL-2.0 */
/*
 * plan.h - how many bytes to copy for a command, and which pointers inside its
 * argument to follow. Replaced as a whole from user space, read under RCU.
 */
#ifndef GW_PLAN_H
#define GW_PLAN_H

#include <linux/bits.h>
#include <linux/types.h>
#include <linux/gpuwatch.h>

#define GW_STEP_NESTED BIT(31)	/* in gw_plan_step.flags: nested[] is used */

struct gw_plan_step {
	u32 cmd;
	u32 cmd_mask;
	u32 flags;
	u16 in_bytes;
	u16 out_bytes;
	u16 next;		/* step to try next, 0: none */
	struct gpuwatch_plan_nested nested[2];
};

struct gw_plan {
	u32 generation;
	u32 default_bytes;
	u32 nr_sizes;
	u16 first[GPUWATCH_NODE_MAX][256];	/* by low byte of the command */
	struct gpuwatch_plan_size *sizes;
	struct gw_plan_step steps[];		/* from 1 */
};

extern struct gw_plan __rcu *gw_plan;

/* Under rcu_read_lock(), like the result. */
static inline const struct gw_plan_step *gw_plan_find(const struct gw_plan *plan, u8 kind,
						      u32 cmd)
{
	u16 i = plan->first[kind][cmd & 0xff];

	while (i && (cmd ^ plan->steps[i].cmd) & plan->steps[i].cmd_mask)
		i = plan->steps[i].next;
	return i ? &plan->steps[i] : NULL;
}

/* Bytes for @key in the plan in force, or 0 when it is not listed. */
u32 gw_plan_size(u32 key);

int gw_plan_init(void);
void gw_plan_exit(void);

/* Checks and takes what user space gave; @from is a kernel copy. */
int gw_plan_set(struct gpuwatch_plan *from);
u32 gw_plan_generation(void);

#endif
