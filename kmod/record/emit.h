/* SPDX-License-Identifier: GPL-2.0 */
/*
 * emit.h - puts one record into the ring of every consumer whose filter it
 * passes, definitions first. For the files of this room only.
 */
#ifndef GW_EMIT_H
#define GW_EMIT_H

#include <linux/log2.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/gpuwatch.h>

#include "record/consumer.h"
#include "record/record.h"
#include "ring/ring.h"

void gw_emit(struct gw_source *source);
/* The same for an ioctl whose captures are on the stack: @bytes from call->fixed on. */
void gw_emit_plain(struct gw_call *call, u32 bytes);

/* Definitions made ready with preemption on. */
struct gw_definitions {
	void *buf;			/* of the stage pool */
	struct gpuwatch_rec *task;
	struct gpuwatch_rec *cgroup;
};

/* Header of a record; the fields of a file are left to the caller. */
static __always_inline void gw_emit_head(struct gpuwatch_rec *rec,
					 const struct gw_subject *subject, u16 type, u32 len,
					 u64 seq)
{
	const u64 *comm = (const u64 *)current->comm;

	rec->len = len;
	rec->type = type;
	rec->flags = subject->flags;
	rec->seq = seq;
	rec->time_ns = subject->now_ns;
	rec->cpu = subject->cpu;
	rec->tgid = current->tgid;
	rec->tid = current->pid;
	rec->uid = __kuid_val(current_uid());
	rec->start_ns = current->group_leader->start_boottime;
	rec->cgroup_id = subject->cgroup_id;
	/* Another thread may be changing it: any mix of old and new will do. */
	((u64 *)rec->comm)[0] = READ_ONCE(comm[0]);
	((u64 *)rec->comm)[1] = READ_ONCE(comm[1]);
}

static __always_inline struct gw_seen *gw_seen_pair(struct gw_seen_table *table, u64 key)
{
	return &table->pairs[key >> (64 - ilog2(GW_SEEN_PAIRS))];
}

/* Is the caller, in its cgroup, not known to be defined in this CPU's ring? */
static __always_inline bool gw_define_needed(struct gw_consumer *consumer,
					     const struct gw_ring *ring, u64 pair_key)
{
	const struct gw_seen *pair = gw_seen_pair(this_cpu_ptr(consumer->seen), pair_key);

	return unlikely(pair->key != pair_key || ring->prod->head >= pair->until);
}

/* define.c. Preemption off but for prepare and finish. */
void gw_define_prepare(struct gw_definitions *defs, const struct gw_subject *subject);
void gw_define_finish(struct gw_definitions *defs);
/* True when a reader ought to be woken. */
bool gw_define_emit(struct gw_consumer *consumer, struct gw_definitions *defs,
		    const struct gw_subject *subject);

#endif
