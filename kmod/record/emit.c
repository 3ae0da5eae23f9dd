// SPDX-License-Identifier: GPL-2.0
/*
 * emit.c - the end of every traced call: identity, filters, definitions, ring.
 * Runs in the context of the traced call; nothing here waits, allocates or
 * prints.
 */
#include <linux/rculist.h>
#include <linux/ktime.h>

#include "record/consumer.h"
#include "record/emit.h"
#include "record/identity.h"
#include "record/record.h"
#include "ring/ring.h"

/* memcpy() of a few hundred bytes by words: no call, no slow string start. */
static __always_inline void gw_copy_words(void *to, const void *from, u32 bytes)
{
	u64 *t = to;
	const u64 *f = from;

	for (; bytes >= 32; bytes -= 32, t += 4, f += 4) {
		u64 a = READ_ONCE(f[0]), b = READ_ONCE(f[1]);
		u64 c = READ_ONCE(f[2]), d = READ_ONCE(f[3]);

		t[0] = a;
		t[1] = b;
		t[2] = c;
		t[3] = d;
	}
	for (; bytes; bytes -= 8)
		*t++ = READ_ONCE(*f++);
}

void gw_emit_head(struct gpuwatch_rec *rec, const struct gw_subject *subject, u16 type,
		  u32 len, u64 seq)
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
	rec->file_id = 0;
	rec->rdev = 0;
	*(u32 *)&rec->node_kind = 0;
	/* Another thread may be changing it: any mix of old and new will do. */
	((u64 *)rec->comm)[0] = READ_ONCE(comm[0]);
	((u64 *)rec->comm)[1] = READ_ONCE(comm[1]);
}

static bool gw_filter_passes(const struct gw_filter *filter, const struct gw_source *source,
			     const struct gw_subject *subject)
{
	unsigned int i;

	if (!(filter->class_mask & GPUWATCH_CLASS(source->type)))
		return false;
	if (!source->file)
		return true;
	if (!(filter->node_mask & (1U << source->file->kind)))
		return false;
	if (unlikely(filter->cgroup) && !cgroup_is_descendant(subject->cgroup, filter->cgroup))
		return false;
	if (likely(!filter->nr_pids))
		return true;
	for (i = 0; i < filter->nr_pids; i++)
		if (filter->pids[i] == current->tgid)
			return true;
	return false;
}

static bool gw_emit_one(struct gw_consumer *consumer, const struct gw_source *source,
			const struct gw_subject *subject)
{
	u32 len = sizeof(struct gpuwatch_rec) + source->fixed_bytes + source->data_bytes;
	struct gw_ring *ring = &consumer->set->rings[subject->cpu];
	struct gpuwatch_rec *rec;
	u64 seq;

	BUILD_BUG_ON(sizeof(struct gpuwatch_rec) + 256 + GW_STAGE_LARGE > GPUWATCH_REC_MAX);
	rec = gw_ring_reserve(ring, len, &seq);
	if (unlikely(!rec))
		return false;
	gw_emit_head(rec, subject, source->type, len, seq);
	if (source->file) {
		rec->file_id = source->file->file_id;
		rec->rdev = source->file->rdev;
		rec->node_kind = source->file->kind;
	}
	gw_copy_words(rec + 1, source->fixed, source->fixed_bytes);
	gw_copy_words((u8 *)(rec + 1) + source->fixed_bytes, source->data, source->data_bytes);
	return gw_ring_commit(ring, len);
}

/*
 * One pass over the consumers, preemption off. False, and nothing was written,
 * when a definition is needed and @defs is NULL.
 */
static bool gw_emit_pass(struct gw_source *source, struct gw_subject *subject,
			 struct gw_definitions *defs, bool *wake)
{
	struct gw_consumer *consumer;

	preempt_disable();
	subject->cpu = smp_processor_id();
	if (!defs) {
		list_for_each_entry_rcu(consumer, &gw_consumers, node) {
			if (gw_filter_passes(rcu_dereference(consumer->filter), source, subject) &&
			    unlikely(gw_define_needed(consumer, subject))) {
				preempt_enable();
				return false;
			}
		}
	}
	/* With preemption off, so that times in a ring never go back. */
	subject->now_ns = ktime_get_ns();
	if (source->duration_ns)
		*source->duration_ns = subject->now_ns - source->begin_ns;
	list_for_each_entry_rcu(consumer, &gw_consumers, node) {
		if (!gw_filter_passes(rcu_dereference(consumer->filter), source, subject))
			continue;
		if (unlikely(defs) && defs->buf)
			*wake |= gw_define_emit(consumer, defs, subject);
		*wake |= gw_emit_one(consumer, source, subject);
	}
	preempt_enable();
	return true;
}

static noinline void gw_emit_defined(struct gw_source *source, struct gw_subject *subject,
				     bool *wake)
{
	struct gw_definitions defs = {};

	gw_define_prepare(&defs, subject);
	gw_emit_pass(source, subject, &defs, wake);
	gw_define_finish(&defs);
}

void gw_emit(struct gw_source *source)
{
	struct gw_subject subject = { .flags = source->flags };
	struct gw_consumer *consumer;
	bool wake = false;

	rcu_read_lock();
	subject.task_key = gw_identity_task_key();
	subject.cgroup = gw_identity_cgroup(&subject.flags);
	subject.cgroup_id = cgroup_id(subject.cgroup);
	if (unlikely(current->flags & PF_KTHREAD))
		subject.flags |= GPUWATCH_F_KTHREAD;
	if (unlikely(!gw_emit_pass(source, &subject, NULL, &wake)))
		gw_emit_defined(source, &subject, &wake);
	if (unlikely(wake))
		list_for_each_entry_rcu(consumer, &gw_consumers, node)
			gw_ring_wake(consumer->set);
	rcu_read_unlock();
}
