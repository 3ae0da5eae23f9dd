// SPDX-License-Identifier: GPL-2.0
/*
 * probe.c - breakpoints in files, shared by the consumers that asked for the
 * same place. A hit takes two registers and asks for a capture; it never reads
 * memory of the caller, so that nobody can block it, and with it the removal
 * of probes, by memory whose faults are never answered.
 *
 * Locks: gw_probe_lock -> the locks of uprobes, and -> gw_probe_list_lock. The
 * list and the owners change under both; a capture looks at them under the
 * second alone, since the first may wait for the memory lock of any process. A
 * hit takes neither.
 */
#include <linux/capability.h>
#include <linux/ctype.h>
#include <linux/dcache.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/ptrace.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#include "compat/uprobe.h"
#include "image/image.h"

struct gw_probe {
	struct list_head node;
	struct gw_uprobe uprobe;
	struct gw_probe_shape shape;
	struct file *file;		/* keeps the inode and its file system */
	atomic64_t hits;
	unsigned int nr_owners;
	u64 owners[GW_CONSUMERS_MAX];
};

static DEFINE_MUTEX(gw_probe_lock);
static DEFINE_SPINLOCK(gw_probe_list_lock);
static LIST_HEAD(gw_probes);
static unsigned int gw_probe_nr;
static u32 gw_probe_last_id;
static atomic64_t gw_probe_hits = ATOMIC64_INIT(0);

static u64 gw_probe_argument(const struct pt_regs *regs, u32 argument)
{
	switch (argument) {
	case 0:
		return regs->di;
	case 1:
		return regs->si;
	case 2:
		return regs->dx;
	case 3:
		return regs->cx;
	case 4:
		return regs->r8;
	default:
		return regs->r9;
	}
}

static GW_UPROBE_HANDLER(gw_probe_hit)
{
	struct gw_probe *probe = container_of(self, struct gw_probe, uprobe.consumer);
	const struct gw_probe_shape *shape = &probe->shape;

	if (regs->cs == __USER32_CS || !gw_consumer_wanted_any(GPUWATCH_REC_IMAGE))
		return 0;
	atomic64_inc(&probe->hits);
	atomic64_inc(&gw_probe_hits);
	gw_capture_later(shape, gw_probe_argument(regs, shape->argument),
			 gw_probe_argument(regs, shape->size_argument));
	return 0;
}

static int gw_probe_check(const struct gpuwatch_probe *arg)
{
	size_t len = strnlen(arg->symbol, sizeof(arg->symbol)), i;

	if (arg->kind < GPUWATCH_PROBE_IMAGE || arg->kind > GPUWATCH_PROBE_CALL)
		return -EINVAL;
	if (arg->argument >= GPUWATCH_PROBE_ARGS || arg->size_argument >= GPUWATCH_PROBE_ARGS)
		return -EINVAL;
	if (arg->kind != GPUWATCH_PROBE_SIZED && arg->size_argument)
		return -EINVAL;
	if (arg->id || arg->pad || arg->offset > S64_MAX || !len || len == sizeof(arg->symbol))
		return -EINVAL;
	for (i = 0; i < sizeof(arg->symbol); i++)
		if (i < len ? !isascii(arg->symbol[i]) || !isgraph(arg->symbol[i]) : arg->symbol[i])
			return -EINVAL;
	return 0;
}

/* The file below an overlay: probed there, it is for all who share it. */
static struct inode *gw_probe_inode(const struct file *file)
{
	struct inode *inode = d_real_inode(file->f_path.dentry);

	return inode && S_ISREG(inode->i_mode) ? inode : NULL;
}

static struct gw_probe *gw_probe_find(const struct inode *inode, u64 offset)
{
	struct gw_probe *probe;

	list_for_each_entry(probe, &gw_probes, node)
		if (probe->uprobe.inode == inode && probe->uprobe.offset == offset)
			return probe;
	return NULL;
}

static bool gw_probe_owned(const struct gw_probe *probe, u64 owner)
{
	unsigned int i;

	for (i = 0; i < probe->nr_owners; i++)
		if (probe->owners[i] == owner)
			return true;
	return false;
}

/* A place that has a probe already. */
static int gw_probe_share(struct gw_probe *probe, u64 owner, const struct gpuwatch_probe *arg)
{
	const struct gw_probe_shape *shape = &probe->shape;

	if (gw_probe_owned(probe, owner))
		return -EEXIST;
	if (shape->kind != arg->kind || shape->argument != arg->argument ||
	    shape->size_argument != arg->size_argument)
		return -EBUSY;
	if (probe->nr_owners == ARRAY_SIZE(probe->owners))
		return -EUSERS;
	spin_lock(&gw_probe_list_lock);
	probe->owners[probe->nr_owners++] = owner;
	spin_unlock(&gw_probe_list_lock);
	return 0;
}

static int gw_probe_set(struct file *file, struct inode *inode, u64 owner,
			const struct gpuwatch_probe *arg, struct gw_probe **set)
{
	struct gw_probe *probe;
	int err;

	if (gw_probe_nr == GPUWATCH_PROBES_MAX)
		return -ENOSPC;
	probe = kzalloc(sizeof(*probe), GFP_KERNEL_ACCOUNT);
	if (!probe)
		return -ENOMEM;
	probe->uprobe.consumer.handler = gw_probe_hit;
	probe->uprobe.inode = inode;
	probe->uprobe.offset = arg->offset;
	probe->owners[probe->nr_owners++] = owner;
	probe->shape = (struct gw_probe_shape) {
		.id = ++gw_probe_last_id,
		.library_dev = MAJOR(inode->i_sb->s_dev) << 20 | MINOR(inode->i_sb->s_dev),
		.library_ino = inode->i_ino,
		.kind = arg->kind,
		.argument = arg->argument,
		.size_argument = arg->size_argument,
	};
	memcpy(probe->shape.symbol, arg->symbol, sizeof(probe->shape.symbol));
	err = gw_uprobe_set(&probe->uprobe);
	if (err) {
		gw_uprobe_clear_wait();
		kfree(probe);
		return err == -ENOTSUPP ? -EOPNOTSUPP : err; /* the former is not for user space */
	}
	probe->file = get_file(file);
	spin_lock(&gw_probe_list_lock);
	list_add_tail(&probe->node, &gw_probes);
	spin_unlock(&gw_probe_list_lock);
	WRITE_ONCE(gw_probe_nr, gw_probe_nr + 1);
	*set = probe;
	return 0;
}

int gw_probe_add(u64 owner, struct gpuwatch_probe *arg)
{
	struct gw_probe *probe;
	struct inode *inode;
	struct file *file;
	int err = gw_probe_check(arg);

	if (err)
		return err;
	if (!IS_ENABLED(CONFIG_UPROBES))
		return -EOPNOTSUPP;
	file = fget(arg->fd);
	if (!file)
		return -EBADF;
	err = -EBADF;
	if (!(file->f_mode & FMODE_READ))
		goto out_put;
	err = -EINVAL;
	inode = gw_probe_inode(file);
	if (!inode || (loff_t)arg->offset >= i_size_read(inode))
		goto out_put;
	mutex_lock(&gw_probe_lock);
	probe = gw_probe_find(inode, arg->offset);
	if (probe)
		err = gw_probe_share(probe, owner, arg);
	else
		err = gw_probe_set(file, inode, owner, arg, &probe);
	if (!err)
		arg->id = probe->shape.id;
	mutex_unlock(&gw_probe_lock);
out_put:
	fput(file);
	return err;
}

/* Moves it to @gone when nobody is left that wants it. */
static void gw_probe_disown(struct gw_probe *probe, u64 owner, struct list_head *gone)
{
	unsigned int i;

	spin_lock(&gw_probe_list_lock);
	for (i = 0; i < probe->nr_owners; i++)
		if (probe->owners[i] == owner)
			probe->owners[i] = probe->owners[--probe->nr_owners];
	if (!probe->nr_owners)
		list_move(&probe->node, gone);
	spin_unlock(&gw_probe_list_lock);
	if (probe->nr_owners)
		return;
	gw_uprobe_clear(&probe->uprobe);
	WRITE_ONCE(gw_probe_nr, gw_probe_nr - 1);
}

/* All of @gone were disowned; the last hit may still be on its way. */
static void gw_probe_free(struct list_head *gone)
{
	struct gw_probe *probe, *next;

	if (list_empty(gone))
		return;
	gw_uprobe_clear_wait();
	list_for_each_entry_safe(probe, next, gone, node) {
		fput(probe->file);
		kfree(probe);
	}
}

int gw_probe_remove(u64 owner, struct gpuwatch_probe_ref *ref)
{
	struct gw_probe *probe, *next;
	LIST_HEAD(gone);
	int err = -ENOENT;

	mutex_lock(&gw_probe_lock);
	list_for_each_entry_safe(probe, next, &gw_probes, node) {
		if (probe->shape.id != ref->id || !gw_probe_owned(probe, owner))
			continue;
		gw_probe_disown(probe, owner, &gone);
		ref->hits = atomic64_read(&probe->hits);
		err = 0;
		break;
	}
	gw_probe_free(&gone);
	mutex_unlock(&gw_probe_lock);
	return err;
}

void gw_probe_owner_gone(u64 owner)
{
	struct gw_probe *probe, *next;
	LIST_HEAD(gone);

	mutex_lock(&gw_probe_lock);
	list_for_each_entry_safe(probe, next, &gw_probes, node)
		if (gw_probe_owned(probe, owner))
			gw_probe_disown(probe, owner, &gone);
	gw_probe_free(&gone);
	mutex_unlock(&gw_probe_lock);
}

unsigned int gw_probe_owners(u32 id, u64 *keys, unsigned int nr)
{
	unsigned int i, owners = 0;
	struct gw_probe *probe;

	spin_lock(&gw_probe_list_lock);
	list_for_each_entry(probe, &gw_probes, node) {
		if (probe->shape.id != id)
			continue;
		for (i = 0; i < nr; i++)
			if (gw_probe_owned(probe, keys[i]))
				keys[owners++] = keys[i];
		break;
	}
	spin_unlock(&gw_probe_list_lock);
	return owners;
}

void gw_probe_status(struct gpuwatch_image_status *status)
{
	status->nr_probes = READ_ONCE(gw_probe_nr);
	status->hits = atomic64_read(&gw_probe_hits);
}
