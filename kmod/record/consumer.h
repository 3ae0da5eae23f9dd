/* SPDX-License-Identifier: GPL-2.0 */
/*
 * consumer.h - who gets records: one per open file with a ring set. The list
 * of enabled consumers is read under RCU by the traced calls.
 */
#ifndef GW_CONSUMER_H
#define GW_CONSUMER_H

#include <linux/cgroup.h>
#include <linux/list.h>
#include <linux/percpu.h>
#include <linux/types.h>
#include <linux/gpuwatch.h>

struct gw_ring_set;

#define GW_CONSUMERS_MAX	16
#define GW_SEEN_PAIRS		128	/* slots per CPU, powers of two */
#define GW_SEEN_TASKS		128
#define GW_SEEN_CGROUPS		64

struct gw_filter {
	u32 node_mask;
	u32 class_mask;
	bool narrow;			/* by cgroup or process */
	u32 nr_pids;
	struct cgroup *cgroup;		/* NULL: all */
	u32 pids[GPUWATCH_FILTER_PIDS];
};

/*
 * A key is defined in this CPU's ring, for as long as the ring's head is below
 * `until`: forever, or until overwriting may have reached the definition.
 */
struct gw_seen {
	u64 key;
	u64 until;
};

/* Touched by its CPU only, with preemption off. */
struct gw_seen_table {
	struct gw_seen pairs[GW_SEEN_PAIRS];	/* process and cgroup, both defined */
	struct gw_seen tasks[GW_SEEN_TASKS];
	struct gw_seen cgroups[GW_SEEN_CGROUPS];
};

struct gw_consumer {
	struct list_head node;
	u64 number;			/* from 1, rising along the list */
	u64 key;			/* its name for other rooms, never used again */
	struct gw_ring_set *set;
	struct gw_filter __rcu *filter;	/* never NULL */
	struct gw_seen_table __percpu *seen;
	bool enabled;			/* on the list; under gw_consumer_lock */
	bool holds_images;		/* by probes of others too */
	struct list_head all_node;	/* of every consumer there is; under the lock too */
};

extern struct list_head gw_consumers;
/* Bit per node kind, by record type: the union of all filters. 0: nobody. */
extern u32 gw_consumer_wants[32];

static inline bool gw_consumer_wanted(enum gpuwatch_rec_type type, u8 kind)
{
	return READ_ONCE(gw_consumer_wants[type]) & (1U << kind);
}

/* The same for records that belong to no node. */
static inline bool gw_consumer_wanted_any(enum gpuwatch_rec_type type)
{
	return READ_ONCE(gw_consumer_wants[type]);
}

struct gw_consumer *gw_consumer_alloc(const struct gpuwatch_setup *setup);
void gw_consumer_free(struct gw_consumer *consumer);
int gw_consumer_enable(struct gw_consumer *consumer);
void gw_consumer_disable(struct gw_consumer *consumer);
int gw_consumer_set_filter(struct gw_consumer *consumer, const struct gpuwatch_filter *filter);

/* Sums over all consumers since the module was loaded, also those that are gone. */
void gw_consumer_sum_stats(struct gpuwatch_stats *stats);

/*
 * emit.c: keys of those that a record of @type, of the caller's, would reach now.
 * Those that hold images by probes of others come first, @nr_holding of them.
 */
unsigned int gw_emit_interested(u16 type, u64 keys[GW_CONSUMERS_MAX], unsigned int *nr_holding);

extern unsigned int gw_consumer_nr;

/* False: no traced call needs to be recorded. */
static inline bool gw_consumer_any(void)
{
	return READ_ONCE(gw_consumer_nr);
}

#endif
