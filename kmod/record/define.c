// SPDX-License-Identifier: GPL-2.0
/*
 * define.c - remembers, per consumer and CPU, which processes and cgroups were
 * defined in that ring, and defines them again when they may be gone from it.
 * A slot taken by another key only costs a repeated definition.
 */
#include <linux/hash.h>

#include "record/consumer.h"
#include "record/emit.h"
#include "record/identity.h"
#include "record/stage.h"
#include "ring/ring.h"

/*
 * In an overwriting ring a definition counts while it lies in the newer half:
 * the older half may vanish while records that need it are still there.
 */
static bool gw_seen_fresh(const struct gw_ring *ring, const struct gw_seen *seen, u64 key)
{
	if (seen->key != key)
		return false;
	return !ring->overwrite || ring->prod->head - seen->pos < (ring->mask + 1) / 2;
}

static struct gw_seen *gw_seen_task(struct gw_consumer *consumer, u64 key)
{
	struct gw_seen_table *table = this_cpu_ptr(consumer->seen);

	return &table->tasks[key >> (64 - ilog2(GW_SEEN_TASKS))];
}

static struct gw_seen *gw_seen_cgroup(struct gw_consumer *consumer, u64 id)
{
	struct gw_seen_table *table = this_cpu_ptr(consumer->seen);

	return &table->cgroups[id % GW_SEEN_CGROUPS];
}

/* v1 and v2 ids may be equal numbers. */
static u64 gw_cgroup_key(const struct gw_subject *subject)
{
	u64 v1 = subject->flags & GPUWATCH_F_CGROUP_V1 ? 1 : 0;

	return (subject->cgroup_id << 2) + 2 + v1;
}

bool gw_define_needed(struct gw_consumer *consumer, const struct gw_subject *subject)
{
	const struct gw_ring *ring = &consumer->set->rings[subject->cpu];

	return !gw_seen_fresh(ring, gw_seen_task(consumer, subject->task_key),
			      subject->task_key) ||
	       !gw_seen_fresh(ring, gw_seen_cgroup(consumer, subject->cgroup_id),
			      gw_cgroup_key(subject));
}

void gw_define_prepare(struct gw_definitions *defs, const struct gw_subject *subject)
{
	defs->buf = gw_stage_pool_get();
	if (!defs->buf)
		return;
	defs->task = defs->buf;
	defs->cgroup = defs->buf + GW_STAGE_LARGE / 2;
	BUILD_BUG_ON(GW_DEFINITION_MAX > GW_STAGE_LARGE / 2);
	defs->cgroup->flags = subject->flags;
	gw_identity_define_task(defs->task);
	gw_identity_define_cgroup(defs->cgroup, subject->cgroup);
}

void gw_define_finish(struct gw_definitions *defs)
{
	if (defs->buf)
		gw_stage_pool_put(defs->buf);
}

static bool gw_define_one(struct gw_ring *ring, struct gw_seen *seen, u64 key, u16 type,
			  const struct gpuwatch_rec *def, const struct gw_subject *subject)
{
	u64 pos = ring->prod->head, seq;
	struct gpuwatch_rec *rec;

	rec = gw_ring_reserve(ring, def->len, &seq);
	if (!rec)
		return false;
	gw_emit_head(rec, subject, type, def->len, seq);
	rec->file_id = 0;
	rec->rdev = 0;
	*(u32 *)&rec->node_kind = 0;
	memcpy(rec + 1, def + 1, def->len - sizeof(*rec));
	seen->key = key;
	seen->pos = pos;
	return gw_ring_commit(ring, def->len);
}

bool gw_define_emit(struct gw_consumer *consumer, struct gw_definitions *defs,
		    const struct gw_subject *subject)
{
	struct gw_ring *ring = &consumer->set->rings[subject->cpu];
	struct gw_seen *seen = gw_seen_task(consumer, subject->task_key);
	const struct gw_filter *filter = rcu_dereference_sched(consumer->filter);
	u64 key = gw_cgroup_key(subject);
	bool wake = false;

	if (!gw_seen_fresh(ring, seen, subject->task_key) &&
	    filter->class_mask & GPUWATCH_CLASS(GPUWATCH_REC_TASK))
		wake |= gw_define_one(ring, seen, subject->task_key, GPUWATCH_REC_TASK,
				      defs->task, subject);
	seen = gw_seen_cgroup(consumer, subject->cgroup_id);
	if (!gw_seen_fresh(ring, seen, key) &&
	    filter->class_mask & GPUWATCH_CLASS(GPUWATCH_REC_CGROUP))
		wake |= gw_define_one(ring, seen, key, GPUWATCH_REC_CGROUP, defs->cgroup, subject);
	return wake;
}
