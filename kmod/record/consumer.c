// SPDX-License-Identifier: GPL-2.0
/*
 * consumer.c - making consumers, their filters, and the list of enabled ones.
 * Lock: gw_consumer_lock for all changes; traced calls only hold RCU.
 */
#include <linux/err.h>
#include <linux/file.h>
#include <linux/mutex.h>
#include <linux/rculist.h>
#include <linux/slab.h>

#include "record/consumer.h"
#include "ring/ring.h"

static DEFINE_MUTEX(gw_consumer_lock);
static u64 gw_consumer_last;
static atomic64_t gw_consumer_last_key = ATOMIC64_INIT(0);
unsigned int gw_consumer_nr __read_mostly;
LIST_HEAD(gw_consumers);
static LIST_HEAD(gw_consumers_all);
static struct gpuwatch_stats gw_consumers_gone;	/* what they got and lost; under the lock */
u32 gw_consumer_wants[32] __read_mostly;

static const u32 gw_all_nodes = (1U << GPUWATCH_NODE_MAX) - 1;

static struct gw_filter *gw_filter_alloc(const struct gpuwatch_filter *from)
{
	struct gw_filter *filter = kzalloc(sizeof(*filter), GFP_KERNEL_ACCOUNT);

	if (!filter)
		return ERR_PTR(-ENOMEM);
	filter->node_mask = from->node_mask ? from->node_mask : gw_all_nodes;
	filter->class_mask = from->class_mask ? from->class_mask : ~0U;
	filter->nr_pids = from->nr_pids;
	filter->narrow = from->nr_pids || from->cgroup_fd >= 0;
	memcpy(filter->pids, from->pids, sizeof(filter->pids));
	if (from->cgroup_fd >= 0) {
		struct cgroup *cgroup = cgroup_get_from_fd(from->cgroup_fd);

		if (IS_ERR(cgroup)) {
			kfree(filter);
			return ERR_CAST(cgroup);
		}
		filter->cgroup = cgroup;
	}
	return filter;
}

static void gw_filter_free(struct gw_filter *filter)
{
	if (filter->cgroup)
		cgroup_put(filter->cgroup);
	kfree(filter);
}

/* Called with the lock held, after the list or a filter changed. */
static void gw_consumer_sum_wants(void)
{
	u32 wants[ARRAY_SIZE(gw_consumer_wants)] = {};
	struct gw_consumer *consumer;
	unsigned int type;

	list_for_each_entry(consumer, &gw_consumers, node) {
		const struct gw_filter *filter =
			rcu_dereference_protected(consumer->filter,
						  lockdep_is_held(&gw_consumer_lock));

		for (type = 0; type < ARRAY_SIZE(wants); type++)
			if (filter->class_mask & (1U << type))
				wants[type] |= filter->node_mask;
	}
	for (type = 0; type < ARRAY_SIZE(wants); type++)
		WRITE_ONCE(gw_consumer_wants[type], wants[type]);
}

struct gw_consumer *gw_consumer_alloc(const struct gpuwatch_setup *setup)
{
	const struct gpuwatch_filter all = { .cgroup_fd = -1 };
	struct gw_consumer *consumer;
	struct gw_filter *filter;
	int err;

	consumer = kzalloc(sizeof(*consumer), GFP_KERNEL_ACCOUNT);
	if (!consumer)
		return ERR_PTR(-ENOMEM);
	filter = gw_filter_alloc(&all);
	if (IS_ERR(filter)) {
		err = PTR_ERR(filter);
		goto err_free_consumer;
	}
	RCU_INIT_POINTER(consumer->filter, filter);
	consumer->holds_images = setup->flags & GPUWATCH_SETUP_HOLD_IMAGES;
	consumer->key = atomic64_inc_return(&gw_consumer_last_key);
	consumer->seen = alloc_percpu_gfp(struct gw_seen_table, GFP_KERNEL_ACCOUNT | __GFP_ZERO);
	if (!consumer->seen) {
		err = -ENOMEM;
		goto err_free_filter;
	}
	consumer->set = gw_ring_set_alloc(setup);
	if (IS_ERR(consumer->set)) {
		err = PTR_ERR(consumer->set);
		goto err_free_seen;
	}
	mutex_lock(&gw_consumer_lock);
	list_add_tail(&consumer->all_node, &gw_consumers_all);
	mutex_unlock(&gw_consumer_lock);
	return consumer;

err_free_seen:
	free_percpu(consumer->seen);
err_free_filter:
	gw_filter_free(filter);
err_free_consumer:
	kfree(consumer);
	return ERR_PTR(err);
}

/* The consumer must be disabled. */
void gw_consumer_free(struct gw_consumer *consumer)
{
	mutex_lock(&gw_consumer_lock);
	gw_ring_stats(consumer->set, &gw_consumers_gone);
	list_del(&consumer->all_node);
	mutex_unlock(&gw_consumer_lock);
	gw_ring_set_free(consumer->set);
	free_percpu(consumer->seen);
	gw_filter_free(rcu_dereference_protected(consumer->filter, true));
	kfree(consumer);
}

void gw_consumer_sum_stats(struct gpuwatch_stats *stats)
{
	struct gw_consumer *consumer;

	mutex_lock(&gw_consumer_lock);
	*stats = gw_consumers_gone;
	list_for_each_entry(consumer, &gw_consumers_all, all_node)
		gw_ring_stats(consumer->set, stats);
	mutex_unlock(&gw_consumer_lock);
}

int gw_consumer_enable(struct gw_consumer *consumer)
{
	int err = 0;

	mutex_lock(&gw_consumer_lock);
	if (consumer->enabled)
		goto out_unlock;
	if (gw_consumer_nr == GW_CONSUMERS_MAX) {
		err = -EUSERS;
		goto out_unlock;
	}
	consumer->number = ++gw_consumer_last;
	list_add_tail_rcu(&consumer->node, &gw_consumers);
	consumer->enabled = true;
	gw_consumer_nr++;
	gw_consumer_sum_wants();
out_unlock:
	mutex_unlock(&gw_consumer_lock);
	return err;
}

/* Returns when no traced call writes to the consumer any more. */
void gw_consumer_disable(struct gw_consumer *consumer)
{
	bool was_enabled;

	mutex_lock(&gw_consumer_lock);
	was_enabled = consumer->enabled;
	if (was_enabled) {
		list_del_rcu(&consumer->node);
		consumer->enabled = false;
		gw_consumer_nr--;
		gw_consumer_sum_wants();
	}
	mutex_unlock(&gw_consumer_lock);
	if (was_enabled)
		synchronize_rcu();
}

int gw_consumer_set_filter(struct gw_consumer *consumer, const struct gpuwatch_filter *from)
{
	struct gw_filter *filter = gw_filter_alloc(from), *old;

	if (IS_ERR(filter))
		return PTR_ERR(filter);
	mutex_lock(&gw_consumer_lock);
	old = rcu_replace_pointer(consumer->filter, filter, lockdep_is_held(&gw_consumer_lock));
	gw_consumer_sum_wants();
	mutex_unlock(&gw_consumer_lock);
	synchronize_rcu();
	gw_filter_free(old);
	return 0;
}
