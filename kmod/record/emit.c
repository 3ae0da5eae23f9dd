// SPDX-License-Identifier: GPL-2.0
/*
 * emit.c - the end of every traced call: identity, filters, definitions, ring.
 * Runs in the context of the traced call; nothing here waits, allocates or
 * prints.
 *
 * With preemption off, which counts as an RCU read section, so that the CPU's
 * ring has one writer and the times in it never go back.
 */
#include <linux/ktime.h>
#include <linux/rculist.h>

#include "compat/uninit.h"
#include "record/clock.h"
#include "record/consumer.h"
#include "record/emit.h"
#include "record/identity.h"
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

static noinline bool gw_filter_narrow(const struct gw_filter *filter,
				      const struct gw_subject *subject)
{
	unsigned int i;

	if (filter->cgroup && !cgroup_is_descendant(subject->cgroup, filter->cgroup))
		return false;
	if (!filter->nr_pids)
		return true;
	for (i = 0; i < filter->nr_pids; i++)
		if (filter->pids[i] == current->tgid)
			return true;
	return false;
}

static __always_inline bool gw_filter_passes(const struct gw_filter *filter,
					     const struct gw_source *source,
					     const struct gw_subject *subject)
{
	if (!(filter->class_mask & GPUWATCH_CLASS(source->type)))
		return false;
	if (!source->file)
		return true;
	if (!(filter->node_mask & (1U << source->file->kind)))
		return false;
	return likely(!filter->narrow) || gw_filter_narrow(filter, subject);
}

static __always_inline bool gw_emit_one(struct gw_ring *ring, const struct gw_source *source,
					const struct gw_subject *subject)
{
	u32 len = sizeof(struct gpuwatch_rec) + source->fixed_bytes + source->data_bytes;
	struct gpuwatch_rec *rec;
	u64 seq;

	BUILD_BUG_ON(sizeof(struct gpuwatch_rec) + 256 + GW_STAGE_LARGE > GPUWATCH_REC_MAX);
	rec = gw_ring_reserve(ring, len, &seq);
	if (unlikely(!rec))
		return false;
	gw_emit_head(rec, subject, source->type, len, seq);
	if (likely(source->file)) {
		rec->file_id = source->file->file_id;
		rec->rdev = source->file->rdev;
		*(u32 *)&rec->node_kind = source->file->kind;
	} else {
		rec->file_id = 0;
		rec->rdev = 0;
		*(u32 *)&rec->node_kind = 0;
	}
	gw_copy_words(rec + 1, source->fixed, source->fixed_bytes);
	gw_copy_words((u8 *)(rec + 1) + source->fixed_bytes, source->data, source->data_bytes);
	return gw_ring_commit(ring, len);
}

enum gw_pass { GW_PASS_DONE, GW_PASS_WAKE, GW_PASS_DEFINE };

/*
 * One pass over the consumers behind *after, preemption off. GW_PASS_DEFINE:
 * the next one needs definitions, and there are none.
 */
static __always_inline enum gw_pass gw_emit_pass(struct gw_source *source,
						 struct gw_subject *subject,
						 struct gw_definitions *defs, u64 *after)
{
	struct gw_consumer *consumer;
	bool wake = false;

	subject->cpu = smp_processor_id();
	subject->now_ns = ktime_get_ns();
	if (source->duration_ns)
		*source->duration_ns = gw_clock_since(source->begin, subject->now_ns);
	list_for_each_entry_rcu(consumer, &gw_consumers, node, !preemptible()) {
		if (unlikely(consumer->number <= *after))
			continue;
		if (!gw_filter_passes(rcu_dereference_sched(consumer->filter), source, subject))
			continue;
		if (unlikely(defs)) {
			if (defs->buf)
				wake |= gw_define_emit(consumer, defs, subject);
		} else if (unlikely(gw_define_needed(consumer, subject))) {
			return GW_PASS_DEFINE;
		}
		wake |= gw_emit_one(&consumer->set->rings[subject->cpu], source, subject);
		*after = consumer->number;
	}
	return wake ? GW_PASS_WAKE : GW_PASS_DONE;
}

static void gw_emit_wake(void)
{
	struct gw_consumer *consumer;

	rcu_read_lock();
	list_for_each_entry_rcu(consumer, &gw_consumers, node)
		gw_ring_wake(consumer->set);
	rcu_read_unlock();
}

static __always_inline void gw_subject_fill(struct gw_subject *subject, u16 flags)
{
	subject->flags = flags;
	subject->cgroup = gw_identity_cgroup(&subject->flags);
	subject->cgroup_id = cgroup_id(subject->cgroup);
	subject->task_key = gw_identity_task_key();
	if (unlikely(current->flags & PF_KTHREAD))
		subject->flags |= GPUWATCH_F_KTHREAD;
}

/* Goes on behind consumer number @after, with definitions at hand. */
static noinline void gw_emit_defined(struct gw_source *source, u64 after)
{
	struct gw_definitions defs = {};
	struct gw_subject subject;

	rcu_read_lock(); /* keeps the cgroup while preemption is on */
	gw_subject_fill(&subject, source->flags);
	gw_define_prepare(&defs, &subject);
	preempt_disable();
	gw_emit_pass(source, &subject, &defs, &after);
	preempt_enable();
	rcu_read_unlock();
	gw_define_finish(&defs);
	gw_emit_wake();
}

void gw_emit(struct gw_source *source)
{
	struct gw_subject subject GW_UNINIT;
	enum gw_pass pass;
	u64 after = 0;

	preempt_disable();
	gw_subject_fill(&subject, source->flags);
	pass = gw_emit_pass(source, &subject, NULL, &after);
	preempt_enable();
	if (unlikely(pass == GW_PASS_DEFINE))
		gw_emit_defined(source, after);
	else if (unlikely(pass == GW_PASS_WAKE))
		gw_emit_wake();
}
