// SPDX-License-Identifier: GPL-2.0
/*
 * identity.c - definition records, made once per process and cgroup and
 * consumer. Paths are hints; a path that does not fit is cut.
 */
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/kernfs.h>
#include <linux/ktime.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>

#include "compat/exe_file.h"
#include "compat/inode_times.h"
#include "record/identity.h"

/* Moves the path d_path() left at the end of the room to its start. */
static u32 gw_identity_exe_path(struct file *exe, char *to)
{
	char *path = d_path(&exe->f_path, to, GPUWATCH_PATH_MAX);
	u32 len;

	if (IS_ERR(path))
		return 0;
	len = strnlen(path, GPUWATCH_PATH_MAX);
	memmove(to, path, len);
	return len;
}

/* Was the executable renamed, linked, written or the like since the start? */
static bool gw_identity_exe_changed(const struct inode *inode)
{
	u64 age = ktime_get_boottime_ns() - current->group_leader->start_boottime;

	return gw_inode_ctime_ns(inode) > ktime_get_real_ns() - age;
}

static u32 gw_identity_exe_flags(const struct file *exe)
{
	struct dentry *dentry = exe->f_path.dentry;
	u32 flags = 0;

	/* A memfd's dentry is a root of its own, which no unlinked file's is. */
	if (IS_ROOT(dentry) && !strncmp(dentry->d_name.name, "memfd:", 6))
		return GPUWATCH_TASK_EXE_MEMFD;
	if (d_unlinked(dentry))
		flags |= GPUWATCH_TASK_EXE_DELETED;
	else if (gw_identity_exe_changed(file_inode(exe)))
		flags |= GPUWATCH_TASK_EXE_CHANGED;
	return flags;
}

/* Parent, its parent and so on, up to the first process of @ns; under RCU. */
static u32 gw_identity_ancestors(struct gpuwatch_ancestor *to, struct pid_namespace *ns)
{
	struct task_struct *task = current->group_leader;
	u32 nr = 0;

	while (nr < GPUWATCH_ANCESTORS_MAX && task != READ_ONCE(ns->child_reaper)) {
		struct task_struct *parent = rcu_dereference(task->real_parent);

		parent = READ_ONCE(parent->group_leader);
		if (parent->tgid == 0 || parent == task)
			break;
		to[nr] = (struct gpuwatch_ancestor) {
			.start_ns = parent->start_boottime,
			.tgid = parent->tgid,
			.ns_tgid = task_tgid_nr_ns(parent, ns),
		};
		/* Its owner may be changing it: any mix of old and new will do. */
		memcpy(to[nr].comm, parent->comm, sizeof(to[nr].comm));
		task = parent;
		nr++;
	}
	return nr;
}

/* Ids of the caller's process in all its namespaces; returns their number. */
static u32 gw_identity_ns_ids(u32 *to, struct pid_namespace *ns)
{
	u32 nr = min_t(u32, ns->level + 1, GPUWATCH_NS_MAX);

	memset(to, 0, ALIGN(nr * sizeof(*to), 8));
	for (; ns && ns->level < GPUWATCH_NS_MAX; ns = ns->parent)
		to[ns->level] = task_tgid_nr_ns(current, ns);
	return nr;
}

/* Fills what lies behind the path at @more; returns its bytes. */
static u32 gw_identity_more(struct gpuwatch_task_more *more, struct pid_namespace *ns,
			    const struct file *exe)
{
	struct gpuwatch_ancestor *ancestors = (void *)(more + 1);

	*more = (struct gpuwatch_task_more) { .exec_id = (u32)current->self_exec_id };
	if (exe)
		more->flags = gw_identity_exe_flags(exe);
	if (!ns)
		return sizeof(*more);
	rcu_read_lock();
	more->nr_ancestors = gw_identity_ancestors(ancestors, ns);
	rcu_read_unlock();
	more->nr_ns = gw_identity_ns_ids((u32 *)(ancestors + more->nr_ancestors), ns);
	return sizeof(*more) + more->nr_ancestors * sizeof(*ancestors) +
	       ALIGN(more->nr_ns * sizeof(u32), 8);
}

static u32 gw_identity_finish(struct gpuwatch_rec *rec, void *payload, u32 fixed, u32 path_len)
{
	u32 len = sizeof(*rec) + fixed + ALIGN(path_len, 8);

	memset((u8 *)payload + fixed + path_len, 0, ALIGN(path_len, 8) - path_len);
	rec->len = len;
	return len;
}

u32 gw_identity_define_task(struct gpuwatch_rec *rec)
{
	struct gpuwatch_rec_task *task = (void *)(rec + 1);
	struct pid_namespace *ns = task_active_pid_ns(current);
	struct file *exe = gw_exe_file_get();
	struct task_struct *parent;
	u32 len;

	memset(task, 0, sizeof(*task));
	rcu_read_lock();
	parent = rcu_dereference(current->real_parent);
	task->parent_tgid = parent->tgid;
	task->parent_start_ns = parent->group_leader->start_boottime;
	rcu_read_unlock();
	if (ns) {	/* NULL late in the exit of a process */
		task->ns_tgid = task_tgid_nr_ns(current, ns);
		task->ns_level = ns->level;
		task->pid_ns = ns->ns.inum;
	}
	if (exe) {
		const struct inode *inode = file_inode(exe);

		task->exe_ino = inode->i_ino;
		task->exe_dev = MAJOR(inode->i_sb->s_dev) << 20 | MINOR(inode->i_sb->s_dev);
		task->path_len = gw_identity_exe_path(exe, (char *)(task + 1));
	}
	len = gw_identity_finish(rec, task, sizeof(*task), task->path_len);
	rec->len = len + gw_identity_more((void *)rec + len, ns, exe);
	if (exe)
		fput(exe);
	return rec->len;
}

u32 gw_identity_define_cgroup(struct gpuwatch_rec *rec, struct cgroup *cgroup)
{
	struct gpuwatch_rec_cgroup *def = (void *)(rec + 1);
	char *path = (char *)(def + 1);
	int len;

	def->version = rec->flags & GPUWATCH_F_CGROUP_V1 ? 1 : 2;
	len = kernfs_path_from_node(cgroup->kn, NULL, path, GPUWATCH_PATH_MAX);
	/* Newer kernels give -E2BIG for a path that was cut, older its length. */
	def->path_len = len < 0 ? (len == -E2BIG ? strnlen(path, GPUWATCH_PATH_MAX - 1) : 0)
				: min(len, GPUWATCH_PATH_MAX - 1);
	return gw_identity_finish(rec, def, sizeof(*def), def->path_len);
}
