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

/* In gw_plan_step.flags, beside GPUWATCH_PLAN_*. */
#define GW_STEP_NESTED	BIT(31)	/* nested[] is used */
#define GW_STEP_DEFAULT	BIT(30)	/* step 0: needs a request word that encodes a size */
#define GW_STEP_PLAIN	BIT(29)	/* few bytes, in whole words, nothing behind them */

struct gw_plan_step {
	u32 cmd;
	u32 cmd_mask;
	u32 flags;		/* GPUWATCH_PLAN_*, GW_STEP_NESTED; 0: a plain argument */
	u16 in_bytes;
	u16 out_bytes;
	u16 next;		/* step to try next, 0: none */
	u16 out_offset;
	struct gpuwatch_plan_nested nested[2];
} __aligned(64);

struct gw_plan {
	u32 generation;
	u32 nr_sizes;
	u16 first[GPUWATCH_NODE_MAX][256];	/* by low byte of the command */
	struct gpuwatch_plan_size *sizes;
	/* From 1; step 0 is what holds for commands without a step. */
	struct gw_plan_step steps[];
};

extern struct gw_plan __rcu *gw_plan;

/* Under RCU, like the result. */
static __always_inline const struct gw_plan_step *gw_plan_find(const struct gw_plan *plan,
							       u8 kind, u32 cmd)
{
	const struct gw_plan_step *step = &plan->steps[plan->first[kind][cmd & 0xff]];

	/* Step 0 has mask 0: it fits all. */
	while (unlikely((cmd ^ step->cmd) & step->cmd_mask))
		step = &plan->steps[step->next];
	return step;
}

/* Bytes for @key in the plan in force, or 0 when it is not listed. */
u32 gw_plan_size(u32 key);

int gw_plan_init(void);
void gw_plan_exit(void);

/* Checks and takes what user space gave; @from is a kernel copy. */
int gw_plan_set(struct gpuwatch_plan *from);
u32 gw_plan_generation(void);

#endif
