/* SPDX-License-Identifier: GPL-2.0 */
/*
 * record.h - turns one call of a driver function into one record for every
 * consumer that wants it. Copies bytes as the capture plan says and interprets
 * none of them. Never fails, blocks or reorders the traced call: what can't be
 * recorded is counted.
 *
 * Call order, in the context of the traced call:
 *	gw_record_ioctl_enter();  original function;  gw_record_ioctl_exit();
 */
#ifndef GW_RECORD_H
#define GW_RECORD_H

#include <linux/fs.h>
#include <linux/mm_types.h>
#include <linux/types.h>
#include <linux/gpuwatch.h>

#include "record/stage.h"

/* A file of an NVIDIA node, as the record's header wants it. */
struct gw_file_id {
	u64 file_id;
	u32 rdev;
	u8 kind;
};

struct gw_nested {
	u64 ptr;
	u32 want;
	u32 len;
	bool after;
};

/* State of one ioctl between entry and exit; lives on the caller's stack. */
struct gw_call {
	struct gw_file_id file;
	bool wanted;		/* false: nobody wants it, exit does nothing */
	bool nofault;		/* user memory must not be faulted in */
	u16 flags;		/* GPUWATCH_F_* */
	u64 begin_ns;
	u64 out_ptr;		/* argument bytes to copy after the call */
	u32 out_want;
	u32 out_len;
	struct gpuwatch_rec_ioctl fixed;
	struct gw_nested nested[2];
	struct gw_stage stage;	/* last: its tail stays untouched when unused */
};

/*
 * With @buf the caller may not sleep: user memory is read only where it is
 * present, and captures go into @buf, of @bytes bytes, not into the pool.
 */
void gw_record_ioctl_enter(struct gw_call *call, struct file *file, unsigned int cmd,
			   unsigned long arg, u16 flags, void *buf, u32 bytes);
void gw_record_ioctl_exit(struct gw_call *call, long ret);

struct gw_vma_range {
	unsigned long start, end, pgoff, vm_flags;
};

static inline struct gw_vma_range gw_vma_range_of(const struct vm_area_struct *vma)
{
	return (struct gw_vma_range) { vma->vm_start, vma->vm_end, vma->vm_pgoff, vma->vm_flags };
}

void gw_record_open(struct file *file, u64 begin_ns, int ret, u16 flags);
void gw_record_mmap(const struct gw_file_id *file, const struct gw_vma_range *range,
		    u64 begin_ns, int ret, u16 flags);
void gw_record_release(const struct gw_file_id *file, u64 begin_ns, u16 flags);
void gw_record_state(enum gpuwatch_state event, u32 value, int error, const char *name);

bool gw_record_file(struct file *file, struct gw_file_id *id);

int gw_record_init(void);
void gw_record_exit(void);

#endif
