// SPDX-License-Identifier: GPL-2.0
/*
 * The driver's own count of calls: totals per CPU, a table of processes, and
 * an optional log of every call with digests of its bytes. Knows nothing of
 * the observer it is compared with.
 */
#include <linux/cgroup.h>
#include <linux/hashtable.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/rculist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>

#include "gws.h"

#define GWS_TASKS_MAX	(1 << 17)

unsigned int gws_witness = 1;
EXPORT_SYMBOL_GPL(gws_witness);
module_param_named(witness, gws_witness, uint, 0644);
MODULE_PARM_DESC(witness, "0 counts nothing, 1 counts calls, 2 also logs them (needs log_entries)");

static unsigned int log_entries;
module_param(log_entries, uint, 0444);
MODULE_PARM_DESC(log_entries, "room of the log, in calls");

struct gws_task {
	struct hlist_node node;
	struct rcu_head rcu;
	u32 tgid;
	u64 start_ns;
	u64 cgroup_id;
	char comm[TASK_COMM_LEN];
	atomic64_t n[GWSIM_NODE_MAX][GWSIM_OP_MAX];
};

static DEFINE_PER_CPU(struct gwsim_counts, gws_counts);
static DEFINE_HASHTABLE(gws_tasks, 10);
static DEFINE_SPINLOCK(gws_tasks_lock);	/* writers of gws_tasks */
static unsigned int gws_nr_tasks;
static atomic64_t gws_untracked;

static struct gwsim_log_entry *gws_log;
static atomic64_t gws_log_next;

static struct gws_task *gws_task_find(u32 tgid, u64 start_ns)
{
	struct gws_task *t;

	hash_for_each_possible_rcu(gws_tasks, t, node, tgid)
		if (t->tgid == tgid && t->start_ns == start_ns)
			return t;
	return NULL;
}

/* A first call of a process. Two threads may come at once: one entry wins. */
static void gws_task_add(u32 tgid, u64 start_ns)
{
	struct gws_task *t = kzalloc(sizeof(*t), GFP_KERNEL);
	bool known;

	if (!t)
		return;
	t->tgid = tgid;
	t->start_ns = start_ns;
	rcu_read_lock();
	t->cgroup_id = cgroup_id(task_dfl_cgroup(current));
	rcu_read_unlock();
	get_task_comm(t->comm, current);

	spin_lock(&gws_tasks_lock);
	rcu_read_lock();
	known = gws_task_find(tgid, start_ns) || gws_nr_tasks >= GWS_TASKS_MAX;
	rcu_read_unlock();
	if (!known) {
		hash_add_rcu(gws_tasks, &t->node, tgid);
		gws_nr_tasks++;
	}
	spin_unlock(&gws_tasks_lock);
	if (known)
		kfree(t);
}

static bool gws_task_inc(u32 tgid, u64 start_ns, u32 kind, u32 op)
{
	struct gws_task *t;

	rcu_read_lock();
	t = gws_task_find(tgid, start_ns);
	if (t)
		atomic64_inc(&t->n[kind][op]);
	rcu_read_unlock();
	return t;
}

void gws_witness_count(u32 kind, u32 op)
{
	u32 tgid = current->tgid;
	u64 start_ns = current->group_leader->start_boottime;

	if (!READ_ONCE(gws_witness))
		return;
	this_cpu_inc(gws_counts.n[kind][op]);
	if (gws_task_inc(tgid, start_ns, kind, op))
		return;
	gws_task_add(tgid, start_ns);
	if (!gws_task_inc(tgid, start_ns, kind, op))
		atomic64_inc(&gws_untracked);
}

bool gws_witness_logs(void)
{
	return gws_log && READ_ONCE(gws_witness) >= 2;
}

void gws_witness_log(u32 kind, u32 op, long ret, const struct gws_seen *seen)
{
	struct gwsim_log_entry *e;
	u64 at;

	if (!gws_witness_logs())
		return;
	at = atomic64_inc_return(&gws_log_next) - 1;
	if (at >= log_entries)
		return;	/* gws_log_next - log_entries is the number dropped */
	e = &gws_log[at];
	e->tgid = current->tgid;
	e->tid = current->pid;
	e->cmd = seen->cmd;
	e->kind = kind;
	e->op = op;
	e->xfer = seen->xfer;
	e->ret = ret;
	e->in_hash = seen->in_hash;
	e->out_hash = seen->out_hash;
	e->nested_in_hash = seen->nested_in_hash;
	e->nested_out_hash = seen->nested_out_hash;
	e->in_len = seen->in_len;
	e->out_len = seen->out_len;
	e->nested_in_len = seen->nested_in_len;
	e->nested_out_len = seen->nested_out_len;
}

void gws_witness_totals(struct gwsim_totals *totals)
{
	u64 next = atomic64_read(&gws_log_next);
	int cpu, kind, op;

	memset(totals, 0, sizeof(*totals));
	for_each_possible_cpu(cpu) {
		struct gwsim_counts *c = per_cpu_ptr(&gws_counts, cpu);

		for (kind = 0; kind < GWSIM_NODE_MAX; kind++)
			for (op = 0; op < GWSIM_OP_MAX; op++)
				totals->counts.n[kind][op] += READ_ONCE(c->n[kind][op]);
	}
	totals->log_used = min_t(u64, next, log_entries);
	totals->log_dropped = next - totals->log_used;
	totals->untracked = atomic64_read(&gws_untracked);
	totals->mismatches = gws_session_mismatches(false);
}

/* Fills a kernel copy under the lock, as copy_to_user() may sleep. */
long gws_witness_tasks(struct gwsim_tasks *req)
{
	u32 room = min_t(u32, req->room, GWS_TASKS_MAX), used = 0;
	struct gwsim_task *copy = NULL;
	struct gws_task *t;
	long ret = 0;
	int i, kind, op;

	if (room) {
		copy = vzalloc(array_size(room, sizeof(*copy)));
		if (!copy)
			return -ENOMEM;
	}
	spin_lock(&gws_tasks_lock);
	hash_for_each(gws_tasks, i, t, node) {
		struct gwsim_task *u = &copy[used];

		if (used == room)
			break;
		used++;
		u->tgid = t->tgid;
		u->start_ns = t->start_ns;
		u->cgroup_id = t->cgroup_id;
		memcpy(u->comm, t->comm, sizeof(u->comm));
		for (kind = 0; kind < GWSIM_NODE_MAX; kind++)
			for (op = 0; op < GWSIM_OP_MAX; op++)
				u->counts.n[kind][op] = atomic64_read(&t->n[kind][op]);
	}
	req->count = gws_nr_tasks;
	spin_unlock(&gws_tasks_lock);
	if (used && copy_to_user(u64_to_user_ptr(req->tasks), copy,
				 array_size(used, sizeof(*copy))))
		ret = -EFAULT;
	vfree(copy);
	return ret;
}

long gws_witness_read_log(struct gwsim_log *req)
{
	u64 used = min_t(u64, atomic64_read(&gws_log_next), log_entries);

	req->count = 0;
	if (req->first >= used)
		return 0;
	req->count = min_t(u64, req->room, used - req->first);
	if (copy_to_user(u64_to_user_ptr(req->entries), gws_log + req->first,
			 array_size(req->count, sizeof(*gws_log))))
		return -EFAULT;
	return 0;
}

void gws_witness_reset(void)
{
	struct gws_task *t;
	struct hlist_node *tmp;
	int cpu, i;

	for_each_possible_cpu(cpu)
		memset(per_cpu_ptr(&gws_counts, cpu), 0, sizeof(struct gwsim_counts));
	spin_lock(&gws_tasks_lock);
	hash_for_each_safe(gws_tasks, i, tmp, t, node) {
		hash_del_rcu(&t->node);
		kfree_rcu(t, rcu);
	}
	gws_nr_tasks = 0;
	spin_unlock(&gws_tasks_lock);
	atomic64_set(&gws_untracked, 0);
	atomic64_set(&gws_log_next, 0);
	gws_session_mismatches(true);
}

int gws_witness_init(void)
{
	if (!log_entries)
		return 0;
	gws_log = vzalloc(array_size(log_entries, sizeof(*gws_log)));
	return gws_log ? 0 : -ENOMEM;
}

void gws_witness_exit(void)
{
	gws_witness_reset();
	vfree(gws_log);
}
