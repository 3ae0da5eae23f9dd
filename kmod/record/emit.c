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
	const u64 *f = from, *end = from + bytes;
	u64 *t = to;

	for (; f + 8 <= end; t += 8, f += 8) {
		t[0] = READ_ONCE(f[0]);
		t[1] = READ_ONCE(f[1]);
		t[2] = READ_ONCE(f[2]);
		t[3] = READ_ONCE(f[3]);
		t[4] = READ_ONCE(f[4]);
		t[5] = READ_ONCE(f[5]);
		t[6] = READ_ONCE(f[6]);
		t[7] = READ_ONCE(f[7]);
	}
	for (; f < end; t++, f++)
		*t = READ_ONCE(*f);
}

static noinline bool gw_filter_narrow(const struct gw_filter *filter, struct cgroup *cgroup)
{
	unsigned int i;

	if (filter->cgroup && !cgroup_is_descendant(cgroup, filter->cgroup))
		return false;
	if (!filter->nr_pids)
		return true;
	for (i = 0; i < filter->nr_pids; i++)
		if (filter->pids[i] == current->tgid)
			return true;
	return false;
}

static __always_inline bool gw_filter_passes(const struct gw_filter *filter, u16 type,
					     const struct gw_file_id *file, bool has_file,
					     struct cgroup *cgroup)
{
	if (!(filter->class_mask & GPUWATCH_CLASS(type)))
		return false;
	if (!has_file) {
		if (type == GPUWATCH_REC_STATE)
			return true;
	} else if (!(filter->node_mask & (1U << file->kind))) {
		return false;
	}
	return likely(!filter->narrow) || gw_filter_narrow(filter, cgroup);
}

static __always_inline bool gw_emit_one(struct gw_ring *ring, const struct gw_source *source,
					bool has_file, const struct gw_subject *subject)
{
	u32 len = sizeof(struct gpuwatch_rec) + source->fixed_bytes + source->data_bytes;
	struct gpuwatch_rec *rec;
	u64 seq;

	BUILD_BUG_ON(sizeof(struct gpuwatch_rec) + 256 + GW_STAGE_LARGE > GPUWATCH_REC_MAX);
	rec = gw_ring_reserve(ring, len, &seq);
	if (unlikely(!rec))
		return false;
	gw_emit_head(rec, subject, source->type, len, seq);
	if (has_file) {
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
 * One pass over the consumers behind number *after, preemption off.
 * GW_PASS_DEFINE: the next one needs definitions, and there are none.
 */
static enum gw_pass gw_emit_pass(const struct gw_source *source, struct gw_subject *subject,
				 struct gw_definitions *defs, u64 *after)
{
	struct gw_consumer *consumer;
	bool wake = false;

	subject->cpu = smp_processor_id();
	subject->now_ns = ktime_get_ns();
	if (source->duration_ns)
		*source->duration_ns = gw_clock_since(source->begin, subject->now_ns);
	list_for_each_entry_rcu(consumer, &gw_consumers, node, !preemptible()) {
		struct gw_ring *ring = &consumer->set->rings[subject->cpu];

		if (consumer->number <= *after)
			continue;
		if (!gw_filter_passes(rcu_dereference_sched(consumer->filter), source->type,
				      source->file, source->file, subject->cgroup))
			continue;
		if (defs) {
			if (defs->buf)
				wake |= gw_define_emit(consumer, defs, subject);
		} else if (gw_define_needed(consumer, ring, subject->pair_key)) {
			return GW_PASS_DEFINE;
		}
		wake |= gw_emit_one(ring, source, source->file, subject);
		*after = consumer->number;
	}
	return wake ? GW_PASS_WAKE : GW_PASS_DONE;
}

static noinline void gw_emit_wake(void)
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
	/* The task's part is spread over all bits, so that a sum tells pairs apart. */
	subject->pair_key = gw_identity_task_key() + subject->cgroup_id;
}

/* Releases may come late, from a kernel thread; ioctls never do. */
static u16 gw_flags_now(u16 flags)
{
	return current->flags & PF_KTHREAD ? flags | GPUWATCH_F_KTHREAD : flags;
}

/* Goes on behind consumer number @after, with definitions at hand. */
static noinline void gw_emit_defined(const struct gw_source *source, u64 after)
{
	struct gw_definitions defs = {};
	struct gw_subject subject;

	rcu_read_lock(); /* keeps the cgroup while preemption is on */
	gw_subject_fill(&subject, gw_flags_now(source->flags));
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
	gw_subject_fill(&subject, gw_flags_now(source->flags));
	pass = gw_emit_pass(source, &subject, NULL, &after);
	preempt_enable();
	if (pass == GW_PASS_DEFINE)
		gw_emit_defined(source, after);
	else if (pass == GW_PASS_WAKE)
		gw_emit_wake();
}

unsigned int gw_emit_interested(u16 type, u64 keys[GW_CONSUMERS_MAX], unsigned int *nr_holding)
{
	struct gw_consumer *consumer;
	unsigned int nr = 0, holding = 0;
	struct cgroup *cgroup;
	u16 flags = 0;

	preempt_disable();
	cgroup = gw_identity_cgroup(&flags);
	list_for_each_entry_rcu(consumer, &gw_consumers, node, !preemptible())
		if (nr < GW_CONSUMERS_MAX &&
		    gw_filter_passes(rcu_dereference_sched(consumer->filter), type, NULL, false,
				     cgroup)) {
			keys[nr++] = consumer->key;
			if (consumer->holds_images) {
				/* swap() takes its arguments twice. */
				swap(keys[nr - 1], keys[holding]);
				holding++;
			}
		}
	preempt_enable();
	*nr_holding = holding;
	return nr;
}

static noinline void gw_emit_plain_defined(struct gw_call *call, u32 bytes, u64 after)
{
	const struct gw_source source = {
		.type = GPUWATCH_REC_IOCTL,
		.flags = call->flags,
		.file = &call->file,
		.fixed = &call->fixed,
		.fixed_bytes = bytes,
		.duration_ns = &call->fixed.duration_ns,
		.begin = call->begin,
	};

	gw_emit_defined(&source, after);
}

static __always_inline bool gw_write_plain(struct gw_ring *ring, struct gw_call *call, u32 bytes)
{
	struct gw_source source;

	/* Or the compiler computes all it can ahead of the loop, and spills it. */
	OPTIMIZER_HIDE_VAR(ring);
	OPTIMIZER_HIDE_VAR(bytes);
	OPTIMIZER_HIDE_VAR(call);
	source = (struct gw_source) {
		.type = GPUWATCH_REC_IOCTL,
		.file = &call->file,
		.fixed = &call->fixed,
		.fixed_bytes = bytes,
	};
	return gw_emit_one(ring, &source, true, &call->subject);
}

/* What gw_emit() does, written out: nothing but @call lies in memory. */
void gw_emit_plain(struct gw_call *call, u32 bytes)
{
	struct gw_subject *subject = &call->subject;
	struct gw_consumer *consumer;
	bool wake = false;
	u64 after = 0;

	preempt_disable();
	gw_subject_fill(subject, call->flags);
	subject->cpu = smp_processor_id();
	subject->now_ns = ktime_get_ns();
	call->fixed.duration_ns = gw_clock_since(call->begin, subject->now_ns);
	list_for_each_entry_rcu(consumer, &gw_consumers, node, !preemptible()) {
		struct gw_ring *ring = &consumer->set->rings[subject->cpu];

		if (!gw_filter_passes(rcu_dereference_sched(consumer->filter),
				      GPUWATCH_REC_IOCTL, &call->file, true, subject->cgroup))
			continue;
		if (gw_define_needed(consumer, ring, subject->pair_key)) {
			preempt_enable();
			gw_emit_plain_defined(call, bytes, after);
			return;
		}
		wake |= gw_write_plain(ring, call, bytes);
		after = consumer->number;
	}
	preempt_enable();
	if (unlikely(wake))
		gw_emit_wake();
}
