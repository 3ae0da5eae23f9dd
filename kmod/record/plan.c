// SPDX-License-Identifier: GPL-2.0
/*
 * plan.c - the built-in capture plan, and plans from user space, which are
 * checked entry by entry before they replace it.
 */
#include <linux/err.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/overflow.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "record/plan.h"
#include "record/stage.h"

#define GW_PLAN_DEFAULT_BYTES	256	/* until user space says otherwise */

static DEFINE_MUTEX(gw_plan_lock);
struct gw_plan __rcu *gw_plan;

/*
 * What every driver branch from 535 on has in common, so that records are
 * useful before user space sends its table. Offsets are those of NVOS21,
 * NVOS64 and NVOS54_PARAMETERS in the driver's nvos.h.
 */
#define GW_FRONTEND_NODES (BIT(GPUWATCH_NODE_CTL) | BIT(GPUWATCH_NODE_GPU))
#define GW_CMD_SIZE_NR	(_IOC_SIZEMASK << _IOC_SIZESHIFT | 0xff)
#define GW_CMD(size, nr) ((u32)(size) << _IOC_SIZESHIFT | (nr))

static const struct gpuwatch_plan_entry gw_plan_builtin[] = {
	{ /* NV_ESC_RM_ALLOC with NVOS64_PARAMETERS: the length is often left 0 */
		.cmd = GW_CMD(48, 0x2b), .cmd_mask = GW_CMD_SIZE_NR,
		.node_mask = GW_FRONTEND_NODES, .in_bytes = 48, .out_bytes = 48,
		.nested[0] = { .ptr_offset = 16, .len_value = 32, .cap = 512,
			       .len_kind = GPUWATCH_LEN_AT, .directions = 3 },
	},
	{ /* NV_ESC_RM_ALLOC with NVOS21_PARAMETERS */
		.cmd = GW_CMD(32, 0x2b), .cmd_mask = GW_CMD_SIZE_NR,
		.node_mask = GW_FRONTEND_NODES, .in_bytes = 32, .out_bytes = 32,
		.nested[0] = { .ptr_offset = 16, .len_value = 24, .cap = 512,
			       .len_kind = GPUWATCH_LEN_AT, .directions = 3 },
	},
	{ /* NV_ESC_RM_CONTROL with NVOS54_PARAMETERS */
		.cmd = GW_CMD(32, 0x2a), .cmd_mask = GW_CMD_SIZE_NR,
		.node_mask = GW_FRONTEND_NODES, .in_bytes = 32, .out_bytes = 32,
		.nested[0] = { .ptr_offset = 16, .len_value = 24, .cap = 512,
			       .len_kind = GPUWATCH_LEN_AT, .directions = 3 },
	},
	{ /* NV_ESC_IOCTL_XFER_CMD */
		.cmd = 0xd3, .cmd_mask = 0xff, .node_mask = GW_FRONTEND_NODES,
		.flags = GPUWATCH_PLAN_XFER, .in_bytes = 16,
	},
};

static int gw_plan_check_nested(const struct gpuwatch_plan_nested *nested, u32 in_bytes)
{
	if (nested->len_kind > GPUWATCH_LEN_BY_KEY)
		return -EINVAL;
	if (nested->len_kind == GPUWATCH_LEN_NONE)
		return 0;
	if (nested->cap > GPUWATCH_PLAN_CAP_MAX || nested->directions > 3 ||
	    nested->directions == 0)
		return -EINVAL;
	/* Everything is read from the copy of the argument before the call. */
	if (nested->ptr_offset + 8 > in_bytes)
		return -EINVAL;
	if (nested->len_kind != GPUWATCH_LEN_FIXED && nested->len_value + 4 > in_bytes)
		return -EINVAL;
	if (nested->len_kind == GPUWATCH_LEN_BY_KEY && nested->key_offset + 4 > in_bytes)
		return -EINVAL;
	return 0;
}

static int gw_plan_check(const struct gpuwatch_plan_entry *entry)
{
	unsigned int i;
	int err;

	if ((entry->cmd_mask & 0xff) != 0xff || entry->out_offset > GPUWATCH_PLAN_CAP_MAX ||
	    entry->flags & ~GPUWATCH_PLAN_XFER || !entry->node_mask ||
	    entry->node_mask >> GPUWATCH_NODE_MAX)
		return -EINVAL;
	if (entry->in_bytes > GPUWATCH_PLAN_CAP_MAX || entry->out_bytes > GPUWATCH_PLAN_CAP_MAX)
		return -EINVAL;
	if (entry->flags & GPUWATCH_PLAN_XFER && entry->in_bytes != 16)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(entry->nested); i++) {
		err = gw_plan_check_nested(&entry->nested[i], entry->in_bytes);
		if (err)
			return err;
	}
	return 0;
}

static void gw_plan_free(struct gw_plan *plan)
{
	if (!plan)
		return;
	kvfree(plan->sizes);
	kvfree(plan);
}

/* Both snapshots are whole words and fit the stack: see gw_record_ioctl_enter(). */
static void gw_plan_mark_plain(struct gw_plan_step *step)
{
	if (!(step->flags & (GW_STEP_NESTED | GPUWATCH_PLAN_XFER)) && step->in_bytes &&
	    !step->out_offset &&
	    step->in_bytes % 8 == 0 && step->out_bytes % 8 == 0 &&
	    step->in_bytes <= GW_STAGE_INLINE && step->out_bytes <= GW_STAGE_INLINE)
		step->flags |= GW_STEP_PLAIN;
}

/* Takes @sizes over, also on failure. */
static struct gw_plan *gw_plan_build(const struct gpuwatch_plan_entry *entries, u32 nr,
				     struct gpuwatch_plan_size *sizes, u32 nr_sizes,
				     u32 default_bytes)
{
	struct gw_plan *plan;
	u32 nr_steps = 1, i;
	u8 kind;
	int err;

	for (i = 0; i < nr; i++) {
		err = gw_plan_check(&entries[i]);
		if (err)
			goto err_free_sizes;
		nr_steps += hweight32(entries[i].node_mask);
	}
	err = -ENOMEM;
	plan = kvzalloc(struct_size(plan, steps, nr_steps), GFP_KERNEL);
	if (!plan)
		goto err_free_sizes;
	plan->sizes = sizes;
	plan->nr_sizes = nr_sizes;
	plan->steps[0].in_bytes = default_bytes;
	plan->steps[0].out_bytes = default_bytes;
	plan->steps[0].flags = GW_STEP_DEFAULT;
	gw_plan_mark_plain(&plan->steps[0]);

	/* From the last entry on, so that each chain ends up in order. */
	for (i = nr; i-- > 0;) {
		const struct gpuwatch_plan_entry *entry = &entries[i];

		for (kind = 0; kind < GPUWATCH_NODE_MAX; kind++) {
			u16 *first = &plan->first[kind][entry->cmd & 0xff];
			struct gw_plan_step *step;

			if (!(entry->node_mask & (1U << kind)))
				continue;
			step = &plan->steps[--nr_steps];
			step->cmd = entry->cmd;
			step->cmd_mask = entry->cmd_mask;
			step->flags = entry->flags;
			if (entry->nested[0].len_kind || entry->nested[1].len_kind)
				step->flags |= GW_STEP_NESTED;
			step->in_bytes = entry->in_bytes;
			step->out_bytes = entry->out_bytes;
			step->out_offset = entry->out_offset;
			gw_plan_mark_plain(step);
			memcpy(step->nested, entry->nested, sizeof(step->nested));
			step->next = *first;
			*first = nr_steps;
		}
	}
	return plan;

err_free_sizes:
	kvfree(sizes);
	return ERR_PTR(err);
}

static u32 gw_plan_publish(struct gw_plan *plan)
{
	static u32 generation;
	struct gw_plan *old;

	mutex_lock(&gw_plan_lock);
	plan->generation = generation++;
	old = rcu_replace_pointer(gw_plan, plan, lockdep_is_held(&gw_plan_lock));
	mutex_unlock(&gw_plan_lock);
	synchronize_rcu();
	gw_plan_free(old);
	return plan->generation;
}

int gw_plan_init(void)
{
	struct gw_plan *plan = gw_plan_build(gw_plan_builtin, ARRAY_SIZE(gw_plan_builtin), NULL, 0,
					     GW_PLAN_DEFAULT_BYTES);

	if (IS_ERR(plan))
		return PTR_ERR(plan);
	gw_plan_publish(plan);
	return 0;
}

void gw_plan_exit(void)
{
	gw_plan_free(rcu_dereference_protected(gw_plan, true));
	RCU_INIT_POINTER(gw_plan, NULL);
}

int gw_plan_set(struct gpuwatch_plan *from)
{
	struct gpuwatch_plan_entry *entries;
	struct gpuwatch_plan_size *sizes = NULL;
	struct gw_plan *plan;
	int err = 0;
	u32 i;

	if (from->flags || from->pad || from->nr_entries > GPUWATCH_PLAN_ENTRIES ||
	    from->nr_sizes > GPUWATCH_PLAN_SIZES || from->default_bytes > GPUWATCH_PLAN_CAP_MAX)
		return -EINVAL;

	entries = vmemdup_user(u64_to_user_ptr(from->entries),
			       array_size(from->nr_entries, sizeof(*entries)));
	if (IS_ERR(entries))
		return PTR_ERR(entries);
	if (from->nr_sizes) {
		sizes = vmemdup_user(u64_to_user_ptr(from->sizes),
				     array_size(from->nr_sizes, sizeof(*sizes)));
		if (IS_ERR(sizes)) {
			err = PTR_ERR(sizes);
			goto out_free_entries;
		}
	}
	for (i = 1; i < from->nr_sizes; i++) {
		if (sizes[i - 1].key >= sizes[i].key) {
			kvfree(sizes);
			err = -EINVAL;
			goto out_free_entries;
		}
	}
	plan = gw_plan_build(entries, from->nr_entries, sizes, from->nr_sizes,
			     from->default_bytes);
	if (IS_ERR(plan)) {
		err = PTR_ERR(plan);
		goto out_free_entries;
	}
	from->generation = gw_plan_publish(plan);
out_free_entries:
	kvfree(entries);
	return err;
}

u32 gw_plan_generation(void)
{
	u32 generation;

	rcu_read_lock();
	generation = rcu_dereference(gw_plan)->generation;
	rcu_read_unlock();
	return generation;
}

static u32 gw_plan_search(const struct gw_plan *plan, u32 key)
{
	u32 low = 0, high = plan->nr_sizes;

	while (low < high) {
		u32 middle = low + (high - low) / 2;

		if (plan->sizes[middle].key == key)
			return plan->sizes[middle].bytes;
		if (plan->sizes[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	return 0;
}

u32 gw_plan_size(u32 key)
{
	u32 bytes;

	rcu_read_lock();
	bytes = gw_plan_search(rcu_dereference(gw_plan), key);
	rcu_read_unlock();
	return bytes;
}
