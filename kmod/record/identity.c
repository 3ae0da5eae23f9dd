// SPDX-License-Identifier: GPL-2.0
/*
 * identity.c - definition records, made once per process and cgroup and
 * consumer. Paths are hints; a path that does not fit is cut.
 */
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/kernfs.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>

#include "compat/exe_file.h"
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
		fput(exe);
	}
	return gw_identity_finish(rec, task, sizeof(*task), task->path_len);
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
