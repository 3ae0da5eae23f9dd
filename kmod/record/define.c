// SPDX-License-Identifier: GPL-2.0
/*
 * define.c - remembers, per consumer and CPU, which processes and cgroups were
 * defined in that ring, and defines them again when they may be gone from it.
 * A slot taken by another key only costs a repeated definition. That all is
 * defined, the usual case, is seen by gw_define_needed() in emit.h.
 */
#include <linux/log2.h>

#include "record/consumer.h"
#include "record/emit.h"
#include "record/identity.h"
#include "record/stage.h"
#include "ring/ring.h"

void gw_define_prepare(struct gw_definitions *defs, const struct gw_subject *subject)
{
	defs->buf = gw_stage_pool_get();
	if (!defs->buf)
		return;
	defs->task = defs->buf;
	defs->cgroup = defs->buf + GW_STAGE_LARGE / 2;
	BUILD_BUG_ON(GW_STAGE_LARGE / 2 < sizeof(struct gpuwatch_rec) +
		     sizeof(struct gpuwatch_rec_task) + GPUWATCH_PATH_MAX +
		     sizeof(struct gpuwatch_task_more) +
		     GPUWATCH_ANCESTORS_MAX * sizeof(struct gpuwatch_ancestor) +
		     ALIGN(GPUWATCH_NS_MAX * sizeof(u32), 8));
	defs->cgroup->flags = subject->flags;
	gw_identity_define_task(defs->task);
	gw_identity_define_cgroup(defs->cgroup, subject->cgroup);
}

void gw_define_finish(struct gw_definitions *defs)
{
	if (defs->buf)
		gw_stage_pool_put(defs->buf);
}

static bool gw_seen_fresh(const struct gw_ring *ring, const struct gw_seen *seen, u64 key)
{
	return seen->key == key && ring->prod->head < seen->until;
}

/*
 * In an overwriting ring a definition counts while it lies in the newer half:
 * the older half may vanish while records that need it are still there.
 */
static u64 gw_seen_until(const struct gw_ring *ring, u64 pos)
{
	return ring->overwrite ? pos + (ring->mask + 1) / 2 : U64_MAX;
}

/* Until when the definition counts; 0: it did not fit. */
static u64 gw_define_one(struct gw_ring *ring, struct gw_seen *seen, u64 key, u16 type,
			 const struct gpuwatch_rec *def, const struct gw_subject *subject,
			 bool *wake)
{
	u64 pos = ring->prod->head, seq;
	struct gpuwatch_rec *rec;

	if (gw_seen_fresh(ring, seen, key))
		return seen->until;
	rec = gw_ring_reserve(ring, def->len, &seq);
	if (!rec)
		return 0;
	gw_emit_head(rec, subject, type, def->len, seq);
	rec->file_id = 0;
	rec->rdev = 0;
	*(u32 *)&rec->node_kind = 0;
	memcpy(rec + 1, def + 1, def->len - sizeof(*rec));
	seen->key = key;
	seen->until = gw_seen_until(ring, pos);
	*wake |= gw_ring_commit(ring, def->len);
	return seen->until;
}

bool gw_define_emit(struct gw_consumer *consumer, struct gw_definitions *defs,
		    const struct gw_subject *subject)
{
	struct gw_seen_table *table = this_cpu_ptr(consumer->seen);
	struct gw_ring *ring = &consumer->set->rings[subject->cpu];
	const struct gw_filter *filter = rcu_dereference_sched(consumer->filter);
	u64 key = gw_identity_task_key(), task_until = U64_MAX, cgroup_until = U64_MAX;
	struct gw_seen *pair = gw_seen_pair(table, subject->pair_key);
	bool wake = false;

	if (filter->class_mask & GPUWATCH_CLASS(GPUWATCH_REC_TASK))
		task_until = gw_define_one(ring,
					   &table->tasks[key >> (64 - ilog2(GW_SEEN_TASKS))],
					   key, GPUWATCH_REC_TASK, defs->task, subject, &wake);

	/* v1 and v2 ids may be equal numbers. */
	key = (subject->cgroup_id << 2) + (subject->flags & GPUWATCH_F_CGROUP_V1 ? 3 : 2);
	if (filter->class_mask & GPUWATCH_CLASS(GPUWATCH_REC_CGROUP))
		cgroup_until = gw_define_one(ring,
					     &table->cgroups[subject->cgroup_id % GW_SEEN_CGROUPS],
					     key, GPUWATCH_REC_CGROUP, defs->cgroup, subject,
					     &wake);
	pair->key = subject->pair_key;
	pair->until = min(task_until, cgroup_until);
	return wake;
}
