/* SPDX-License-Identifier: GPL-2.0 */
/*
 * emit.h - puts one record into the ring of every consumer whose filter it
 * passes, definitions first. For the files of this room only.
 */
#ifndef GW_EMIT_H
#define GW_EMIT_H

#include <linux/sched.h>
#include <linux/types.h>
#include <linux/gpuwatch.h>

#include "record/record.h"

struct cgroup;
struct gw_consumer;

void gw_emit(struct gw_source *source);

/* Definitions made ready with preemption on. */
struct gw_definitions {
	void *buf;			/* of the stage pool */
	struct gpuwatch_rec *task;
	struct gpuwatch_rec *cgroup;
};

/* What all consumers' records of one call share. */
struct gw_subject {
	u64 now_ns;
	u64 task_key;
	u64 cgroup_id;
	struct cgroup *cgroup;
	unsigned int cpu;
	u16 flags;
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

/* define.c. Preemption off but for prepare and finish. */
bool gw_define_needed(struct gw_consumer *consumer, const struct gw_subject *subject);
void gw_define_prepare(struct gw_definitions *defs, const struct gw_subject *subject);
void gw_define_finish(struct gw_definitions *defs);
/* True when a reader ought to be woken. */
bool gw_define_emit(struct gw_consumer *consumer, struct gw_definitions *defs,
		    const struct gw_subject *subject);

#endif
