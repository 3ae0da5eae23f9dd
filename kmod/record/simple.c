// SPDX-License-Identifier: GPL-2.0
/*
 * simple.c - records without captures: open, mmap, release, image, state; and the
 * identity of files.
 */
#include <linux/mm.h>
#include <linux/mman.h>
#include <linux/random.h>
#include <linux/string.h>

#include "compat/inode_times.h"
#include "record/consumer.h"
#include "record/emit.h"
#include "record/node.h"
#include "record/plan.h"
#include "record/record.h"
#include "record/tap.h"

u64 gw_file_key[2] __read_mostly;

int gw_record_init(void)
{
	int err;

	get_random_bytes(gw_file_key, sizeof(gw_file_key));
	gw_file_key[1] |= 1; /* odd, so that the product is one-to-one */
	err = gw_stage_init();
	if (err)
		return err;
	err = gw_plan_init();
	if (err)
		gw_stage_exit();
	return err;
}

void gw_record_exit(void)
{
	gw_plan_exit();
	gw_stage_exit();
}

void gw_record_open(struct file *file, u64 begin, int ret, u16 flags)
{
	struct gpuwatch_rec_open open = { .ret = ret, .f_flags = file->f_flags };
	const struct inode *inode = file_inode(file);
	struct gpuwatch_open_node node;
	struct gw_file_id id;
	struct gw_source source = {
		.type = GPUWATCH_REC_OPEN,
		.flags = flags,
		.file = &id,
		.fixed = &open,
		.fixed_bytes = sizeof(open),
		.data = &node,
		.data_bytes = sizeof(node),
		.duration_ns = &open.duration_ns,
		.begin = begin,
	};

	/* Most opens of character devices are not ours. */
	if (!gw_record_file(file, &id))
		return;
	gw_tap_file(GPUWATCH_EVENT_OPEN, &id, ret, file->f_flags);
	if (!gw_consumer_wanted(source.type, id.kind))
		return;
	node = (struct gpuwatch_open_node) {
		.ino = inode->i_ino,
		.ctime_ns = gw_inode_ctime_ns(inode),
		.dev = MAJOR(inode->i_sb->s_dev) << 20 | MINOR(inode->i_sb->s_dev),
	};
	gw_emit(&source);
}

void gw_record_mmap(const struct gw_file_id *file, const struct gw_vma_range *range,
		    u64 begin, int ret, u16 flags)
{
	struct gpuwatch_rec_mmap map = {
		.ret = ret,
		.addr = range->start,
		.length = range->end - range->start,
		.offset = (u64)range->pgoff << PAGE_SHIFT,
		.prot = (range->vm_flags & VM_READ ? PROT_READ : 0) |
			(range->vm_flags & VM_WRITE ? PROT_WRITE : 0) |
			(range->vm_flags & VM_EXEC ? PROT_EXEC : 0),
		.shared = !!(range->vm_flags & VM_MAYSHARE),
	};
	struct gw_source source = {
		.type = GPUWATCH_REC_MMAP,
		.flags = flags,
		.file = file,
		.fixed = &map,
		.fixed_bytes = sizeof(map),
		.duration_ns = &map.duration_ns,
		.begin = begin,
	};

	if (gw_consumer_wanted(source.type, file->kind))
		gw_emit(&source);
}

void gw_record_release(const struct gw_file_id *file, u64 begin, u16 flags)
{
	struct gpuwatch_rec_release release = {};
	struct gw_source source = {
		.type = GPUWATCH_REC_RELEASE,
		.flags = flags,
		.file = file,
		.fixed = &release,
		.fixed_bytes = sizeof(release),
		.duration_ns = &release.duration_ns,
		.begin = begin,
	};

	gw_tap_file(GPUWATCH_EVENT_CLOSE, file, 0, 0);
	if (gw_consumer_wanted(source.type, file->kind))
		gw_emit(&source);
}

void gw_record_image(struct gpuwatch_rec_image *image, const void *data, u32 bytes)
{
	struct gw_source source = {
		.type = GPUWATCH_REC_IMAGE,
		.fixed = image,
		.fixed_bytes = sizeof(*image),
		.data = data,
		.data_bytes = bytes,
	};

	gw_tap_image(image);
	gw_emit(&source);
}

void gw_record_state(enum gpuwatch_state event, u32 value, int error, const char *name)
{
	struct gpuwatch_rec_state state = { .event = event, .value = value, .error = error };
	struct gw_source source = {
		.type = GPUWATCH_REC_STATE,
		.fixed = &state,
		.fixed_bytes = sizeof(state),
	};

	strscpy(state.name, name, sizeof(state.name));
	gw_tap_state(event, value, error, state.name);
	gw_emit(&source);
}
