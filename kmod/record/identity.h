/* SPDX-License-Identifier: GPL-2.0 */
/*
 * identity.h - who is calling: process, thread, user, cgroup. Read from
 * `current` without locks that could wait.
 */
#ifndef GW_IDENTITY_H
#define GW_IDENTITY_H

#include <linux/cgroup.h>
#include <linux/cred.h>
#include <linux/sched.h>
#include <linux/gpuwatch.h>

/* Name of the calling program image: another after exec, the same in threads. */
static __always_inline u64 gw_identity_task_key(void)
{
	const struct task_struct *leader = current->group_leader;

	return leader->start_boottime * 0x9e3779b97f4a7c15ULL +
	       ((u64)(u32)current->self_exec_id << 32) + current->tgid;
}

/*
 * The caller's cgroup in cgroup2; where that is the root, as on hosts that
 * mount only v1, the one in the v1 memory hierarchy. The result lives as long
 * as preemption is off or rcu_read_lock() is held.
 */
static __always_inline struct cgroup *gw_identity_cgroup(u16 *flags)
{
	struct css_set *set = rcu_dereference_check(current->cgroups, !preemptible());
	struct cgroup *cgroup = set->dfl_cgrp;

#ifdef CONFIG_MEMCG
	if (unlikely(cgroup->level == 0)) {
		struct cgroup *v1 = set->subsys[memory_cgrp_id]->cgroup;

		if (v1->root != cgroup->root) {
			*flags |= GPUWATCH_F_CGROUP_V1;
			return v1;
		}
	}
#endif
	return cgroup;
}

/* Builds a definition record for the caller in @buf; returns its length. */
u32 gw_identity_define_task(struct gpuwatch_rec *rec);
u32 gw_identity_define_cgroup(struct gpuwatch_rec *rec, struct cgroup *cgroup);

#endif
