// SPDX-License-Identifier: GPL-2.0
/*
 * wrap.c - the code a redirected call runs into: record, call the original,
 * record. Each slot of the target table has a thunk of its own, since a wrapper
 * is told nothing but the arguments of the call.
 *
 * A wrapper may be asleep in the driver when the hooks are taken out; the
 * counts in gw_target.flow say when the last one is back.
 */

#include "compat/mm.h"
#include "compat/uninit.h"
#include "hook/hook.h"
#include "record/clock.h"
#include "record/record.h"

typedef long (*gw_ioctl_fn)(struct file *file, unsigned int cmd, unsigned long arg);
typedef int (*gw_mmap_fn)(struct file *file, struct vm_area_struct *vma);
typedef int (*gw_inode_fn)(struct inode *inode, struct file *file);

static __always_inline long gw_wrap_ioctl(struct gw_target *target, struct file *file,
					  unsigned int cmd, unsigned long arg)
{
	struct gw_call call GW_UNINIT;
	long ret;

	gw_target_enter(target);
	gw_record_ioctl_enter(&call, file, cmd, arg);
	ret = ((gw_ioctl_fn)READ_ONCE(target->body))(file, cmd, arg);
	gw_record_ioctl_exit(&call, ret);
	gw_target_leave(target);
	return ret;
}

static noinline int gw_wrap_mmap(struct gw_target *target, struct file *file,
				 struct vm_area_struct *vma)
{
	struct gw_vma_range range;
	struct gw_file_id id;
	bool wanted;
	u64 begin;
	int ret;

	gw_target_enter(target);
	wanted = gw_record_file(file, &id);
	begin = gw_clock_mark();
	ret = ((gw_mmap_fn)READ_ONCE(target->body))(file, vma);
	if (wanted) {
		range = gw_vma_range_of(vma);
		gw_record_mmap(&id, &range, begin, ret, 0);
	}
	gw_target_leave(target);
	return ret;
}

static noinline int gw_wrap_release(struct gw_target *target, struct inode *inode,
				    struct file *file)
{
	struct gw_file_id id;
	bool wanted;
	u64 begin;
	int ret;

	gw_target_enter(target);
	wanted = gw_record_file(file, &id);
	begin = gw_clock_mark();
	ret = ((gw_inode_fn)READ_ONCE(target->body))(inode, file);
	if (wanted)
		gw_record_release(&id, begin, 0);
	gw_target_leave(target);
	return ret;
}

/* Every open of a character device comes by here, most of them not ours. */
static noinline int gw_wrap_open(struct gw_target *target, struct inode *inode,
				 struct file *file)
{
	u64 begin = gw_clock_mark();
	int ret;

	gw_target_enter(target);
	ret = ((gw_inode_fn)READ_ONCE(target->body))(inode, file);
	if (!ret)
		gw_discover_opened(file);
	gw_record_open(file, begin, ret, 0);
	gw_target_leave(target);
	return ret;
}

#ifdef HAS_MMAP_PREPARE
typedef int (*gw_mmap_prepare_fn)(struct vm_area_desc *desc);

static noinline int gw_wrap_mmap_prepare(struct gw_target *target, struct vm_area_desc *desc)
{
	struct gw_vma_range range;
	struct gw_file_id id;
	bool wanted;
	u64 begin;
	int ret;

	gw_target_enter(target);
	wanted = desc->file && gw_record_file(desc->file, &id);
	begin = gw_clock_mark();
	ret = ((gw_mmap_prepare_fn)READ_ONCE(target->body))(desc);
	if (wanted) {
		range = (struct gw_vma_range) { desc->start, desc->end, desc->pgoff,
						gw_vm_desc_flags(desc) };
		gw_record_mmap(&id, &range, begin, ret, 0);
	}
	gw_target_leave(target);
	return ret;
}
#endif

#define GW_SLOT(op, n) (&gw_targets[(op) * GW_TARGETS_PER_OP + (n)])

#define GW_THUNKS(n) \
static long gw_ioctl_##n(struct file *file, unsigned int cmd, unsigned long arg) \
{ \
	return gw_wrap_ioctl(GW_SLOT(GPUWATCH_OP_IOCTL, n), file, cmd, arg); \
} \
static long gw_compat_ioctl_##n(struct file *file, unsigned int cmd, unsigned long arg) \
{ \
	return gw_wrap_ioctl(GW_SLOT(GPUWATCH_OP_COMPAT_IOCTL, n), file, cmd, arg); \
} \
static int gw_open_##n(struct inode *inode, struct file *file) \
{ \
	return gw_wrap_open(GW_SLOT(GPUWATCH_OP_OPEN, n), inode, file); \
} \
static int gw_mmap_##n(struct file *file, struct vm_area_struct *vma) \
{ \
	return gw_wrap_mmap(GW_SLOT(GPUWATCH_OP_MMAP, n), file, vma); \
} \
static int gw_release_##n(struct inode *inode, struct file *file) \
{ \
	return gw_wrap_release(GW_SLOT(GPUWATCH_OP_RELEASE, n), inode, file); \
}

#ifdef HAS_MMAP_PREPARE
#define GW_THUNKS_PREPARE(n) \
static int gw_mmap_prepare_##n(struct vm_area_desc *desc) \
{ \
	return gw_wrap_mmap_prepare(GW_SLOT(GPUWATCH_OP_MMAP_PREPARE, n), desc); \
}
#define GW_PREPARE_ADDRESS(n) (unsigned long)gw_mmap_prepare_##n
#else
#define GW_THUNKS_PREPARE(n)
#define GW_PREPARE_ADDRESS(n) 0
#endif

#define GW_FOR_SLOTS(do) \
	do(0) do(1) do(2) do(3) do(4) do(5) do(6) do(7) \
	do(8) do(9) do(10) do(11) do(12) do(13) do(14) do(15)

GW_FOR_SLOTS(GW_THUNKS)
GW_FOR_SLOTS(GW_THUNKS_PREPARE)

#define GW_IOCTL_ADDRESS(n)	(unsigned long)gw_ioctl_##n,
#define GW_COMPAT_ADDRESS(n)	(unsigned long)gw_compat_ioctl_##n,
#define GW_OPEN_ADDRESS(n)	(unsigned long)gw_open_##n,
#define GW_MMAP_ADDRESS(n)	(unsigned long)gw_mmap_##n,
#define GW_PREPARE_ENTRY(n)	GW_PREPARE_ADDRESS(n),
#define GW_RELEASE_ADDRESS(n)	(unsigned long)gw_release_##n,

static const unsigned long gw_wrappers[GW_OPS][GW_TARGETS_PER_OP] = {
	[GPUWATCH_OP_OPEN] = { GW_FOR_SLOTS(GW_OPEN_ADDRESS) },
	[GPUWATCH_OP_IOCTL] = { GW_FOR_SLOTS(GW_IOCTL_ADDRESS) },
	[GPUWATCH_OP_COMPAT_IOCTL] = { GW_FOR_SLOTS(GW_COMPAT_ADDRESS) },
	[GPUWATCH_OP_MMAP] = { GW_FOR_SLOTS(GW_MMAP_ADDRESS) },
	[GPUWATCH_OP_MMAP_PREPARE] = { GW_FOR_SLOTS(GW_PREPARE_ENTRY) },
	[GPUWATCH_OP_RELEASE] = { GW_FOR_SLOTS(GW_RELEASE_ADDRESS) },
};

unsigned long gw_wrapper(enum gpuwatch_op op, unsigned int index)
{
	BUILD_BUG_ON(GW_TARGETS_PER_OP != 16);
	return gw_wrappers[op][index];
}
