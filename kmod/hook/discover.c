// SPDX-License-Identifier: GPL-2.0
/*
 * discover.c - finds the functions of the driver's operations tables without
 * its symbols: in the files that processes have open, and at every open, by a
 * hook on chrdev_open(). Opens no NVIDIA node, since that would power up a GPU.
 *
 * Not found: a table reached only by descriptors that are on their way through
 * a socket while we attach, until somebody opens a node of that family.
 */
#include <linux/cdev.h>
#include <linux/fdtable.h>
#include <linux/file.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include "hook/hook.h"
#include "record/node.h"
#include "record/record.h"

#define GW_TABLES_MAX	32

/* Tables whose functions are targets. Read without the lock: a hint. */
static const struct file_operations *gw_tables[GW_TABLES_MAX];

/* What the scan under spinlocks found; owners are held until it is hooked. */
struct gw_found {
	unsigned int nr;
	struct {
		const struct file_operations *fops;
		struct module *owner;
	} table[GW_TABLES_MAX];
};

static void gw_discover_rescan(struct work_struct *work);
static DECLARE_DELAYED_WORK(gw_rescan, gw_discover_rescan);

static bool gw_table_known(const struct file_operations *fops)
{
	unsigned int i;

	for (i = 0; i < GW_TABLES_MAX; i++)
		if (READ_ONCE(gw_tables[i]) == fops)
			return true;
	return false;
}

static void gw_table_note(const struct file_operations *fops)
{
	unsigned int i;

	for (i = 0; i < GW_TABLES_MAX; i++) {
		if (!gw_tables[i]) {
			WRITE_ONCE(gw_tables[i], fops);
			return;
		}
	}
}

static void gw_discover_function(enum gpuwatch_op op, unsigned long func, const char *module)
{
	struct gw_target *target;

	if (!func)
		return;
	target = gw_target_add(op, func, module);
	if (IS_ERR(target))
		gw_record_state(GPUWATCH_STATE_HOOK_FAILED, op, PTR_ERR(target), module);
	else if (gw_hook_attached())
		gw_target_hook(target);
}

static void gw_discover_table(const struct file_operations *fops, const char *module)
{
	lockdep_assert_held(&gw_hook_lock);
	if (gw_table_known(fops))
		return;
	gw_discover_function(GPUWATCH_OP_IOCTL, (unsigned long)fops->unlocked_ioctl, module);
	if ((unsigned long)fops->compat_ioctl != (unsigned long)fops->unlocked_ioctl)
		gw_discover_function(GPUWATCH_OP_COMPAT_IOCTL, (unsigned long)fops->compat_ioctl,
				     module);
	gw_discover_function(GPUWATCH_OP_MMAP, (unsigned long)fops->mmap, module);
#ifdef HAS_MMAP_PREPARE
	gw_discover_function(GPUWATCH_OP_MMAP_PREPARE, (unsigned long)fops->mmap_prepare, module);
#endif
	gw_discover_function(GPUWATCH_OP_RELEASE, (unsigned long)fops->release, module);
	/* Last: who sees the table known may rely on the hooks. */
	gw_table_note(fops);
}

/* The driver module behind an open file, NULL when it is not NVIDIA's. */
static struct module *gw_file_owner(struct file *file)
{
	struct inode *inode = file_inode(file);
	struct cdev *cdev;

	if (!S_ISCHR(inode->i_mode))
		return NULL;
	cdev = READ_ONCE(inode->i_cdev);
	if (!cdev || !cdev->owner || !gw_node_is_driver(cdev->owner->name))
		return NULL;
	return cdev->owner;
}

/* @file was just opened: its module can't go. */
void gw_discover_opened(struct file *file)
{
	struct module *owner = gw_file_owner(file);

	if (likely(!owner))
		return;
	gw_node_learn(file_inode(file)->i_rdev, owner->name);
	if (gw_table_known(file->f_op))
		return;
	mutex_lock(&gw_hook_lock);
	if (gw_hook_attached())
		gw_discover_table(file->f_op, owner->name);
	mutex_unlock(&gw_hook_lock);
}

static int gw_scan_file(const void *data, struct file *file, unsigned int fd)
{
	struct gw_found *found = (struct gw_found *)data;
	struct module *owner = gw_file_owner(file);
	unsigned int i;

	if (!owner)
		return 0;
	gw_node_learn(file_inode(file)->i_rdev, owner->name);
	for (i = 0; i < found->nr; i++)
		if (found->table[i].fops == file->f_op)
			return 0;
	if (found->nr < GW_TABLES_MAX && try_module_get(owner)) {
		found->table[found->nr].fops = file->f_op;
		found->table[found->nr].owner = owner;
		found->nr++;
	}
	return 0;
}

/* Files that are open already. */
static void gw_discover_scan(void)
{
	struct gw_found *found = kzalloc(sizeof(*found), GFP_KERNEL);
	struct task_struct *process, *thread;
	unsigned int i;

	if (!found)
		return;
	rcu_read_lock();
	for_each_process_thread(process, thread) {
		task_lock(thread);
		/* Threads with a table of their own (CLONE_FILES not shared) count. */
		if (thread->files && (thread == process || thread->files != process->files))
			iterate_fd(thread->files, 0, gw_scan_file, found);
		task_unlock(thread);
	}
	rcu_read_unlock();

	for (i = 0; i < found->nr; i++) {
		gw_discover_table(found->table[i].fops, found->table[i].owner->name);
		module_put(found->table[i].owner);
	}
	kfree(found);
}

static void gw_discover_rescan(struct work_struct *work)
{
	mutex_lock(&gw_hook_lock);
	if (gw_hook_attached())
		gw_discover_scan();
	mutex_unlock(&gw_hook_lock);
}

void gw_discover_later(void)
{
	schedule_delayed_work(&gw_rescan, msecs_to_jiffies(20));
}

/* Address of chrdev_open(), which no symbol gives away: /dev/null's inode does. */
static unsigned long gw_chrdev_open(void)
{
	struct file *file = filp_open("/dev/null", O_RDONLY, 0);
	unsigned long func;

	if (IS_ERR(file))
		return 0;
	/* What the caller's mount namespace calls /dev/null may be anything. */
	func = S_ISCHR(file_inode(file)->i_mode) ? (unsigned long)file_inode(file)->i_fop->open : 0;
	filp_close(file, NULL);
	return func;
}

/*
 * With kernel.ftrace_enabled at 0 a kretprobe is set without an error and never
 * fires: it rests on ftrace as well. So it has to fire once.
 */
static bool gw_discover_proven(const struct gw_target *target)
{
	u64 before, after, in_flight;

	gw_target_flow(target, &before, &in_flight);
	gw_chrdev_open();
	gw_target_flow(target, &after, &in_flight);
	return after != before;
}

int gw_discover_start(void)
{
	static unsigned long chrdev_open;
	struct gw_target *target;
	int err;

	lockdep_assert_held(&gw_hook_lock);
	gw_node_refresh();
	if (!chrdev_open)
		chrdev_open = gw_chrdev_open();
	if (!chrdev_open)
		return -ENOENT;
	target = gw_target_add(GPUWATCH_OP_OPEN, chrdev_open, "kernel");
	if (IS_ERR(target))
		return PTR_ERR(target);
	err = gw_target_hook(target);
	if (!err && target->method == GPUWATCH_METHOD_KRETPROBE && !gw_discover_proven(target))
		err = -EOPNOTSUPP;
	if (err)
		return err;
	/* Known from before, when a detach is still waiting for calls in flight. */
	gw_target_hook_all();
	gw_discover_scan();
	/*
	 * A file whose open passed chrdev_open() before the hook and reached
	 * its descriptor table after the scan.
	 */
	schedule_delayed_work(&gw_rescan, HZ);
	return 0;
}

/* After all targets are gone. */
void gw_discover_forget(void)
{
	memset(gw_tables, 0, sizeof(gw_tables));
}

/* A driver's text is about to go, or did not come up: nothing runs in it. */
static void gw_driver_going(const char *name)
{
	unsigned int i;

	mutex_lock(&gw_hook_lock);
	for (i = 0; i < GW_TARGETS_MAX; i++)
		if (gw_targets[i].func && !strcmp(gw_targets[i].module, name))
			gw_target_remove(&gw_targets[i]);
	/* The tables of the other modules are found again at their next open. */
	gw_discover_forget();
	if (gw_hook_attached())
		gw_discover_scan();
	mutex_unlock(&gw_hook_lock);
	gw_record_state(GPUWATCH_STATE_DRIVER_GOING, 0, 0, name);
}

static int gw_module_event(struct notifier_block *block, unsigned long event, void *data)
{
	const struct module *mod = data;

	if (!gw_node_is_driver(mod->name))
		return NOTIFY_DONE;
	if (event == MODULE_STATE_LIVE) {
		gw_node_refresh();
		gw_record_state(GPUWATCH_STATE_DRIVER_LIVE, 0, 0, mod->name);
	} else if (event == MODULE_STATE_GOING) {
		gw_driver_going(mod->name);
	}
	return NOTIFY_DONE;
}

/* ftrace forgets the module's functions at INT_MIN: we are out by then. */
static struct notifier_block gw_module_block = { .notifier_call = gw_module_event };

int gw_discover_init(void)
{
	return register_module_notifier(&gw_module_block);
}

void gw_discover_exit(void)
{
	unregister_module_notifier(&gw_module_block);
	cancel_delayed_work_sync(&gw_rescan);
}
