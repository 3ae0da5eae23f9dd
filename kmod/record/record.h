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

#include "record/node.h"
#include "record/stage.h"

struct cgroup;

/* A file of an NVIDIA node, as the record's header wants it. */
struct gw_file_id {
	u64 file_id;
	u32 rdev;
	u8 kind;
};

/* A record without its header. */
struct gw_source {
	u16 type;
	u16 flags;			/* GPUWATCH_F_* */
	u32 fixed_bytes;		/* multiple of 8 */
	u32 data_bytes;			/* multiple of 8 */
	const struct gw_file_id *file;	/* NULL for records without a file */
	void *fixed;
	const void *data;
	u64 *duration_ns;		/* inside fixed, or NULL */
	u64 begin;			/* gw_clock_mark() */
};

/* What all consumers' records of one call share. */
struct gw_subject {
	u64 now_ns;
	u64 pair_key;			/* process and cgroup */
	u64 cgroup_id;
	struct cgroup *cgroup;
	unsigned int cpu;
	u16 flags;
};

struct gw_nested {
	u64 ptr;
	u32 want;
	u32 len;
	bool after;
};

/* What the plan says for one call; a copy, since user copies may sleep. */
struct gw_argument {
	u64 ptr;
	u32 want;
	u32 in;
	u32 out;
	u32 in_used;		/* when plain: bytes of the first capture, head included */
	u32 out_offset;		/* not when plain, nor what follows */
	u32 flags;		/* of the plan's step */
	struct gpuwatch_plan_nested nested[2];
};

/*
 * State of one ioctl between entry and exit, on the caller's stack and filled
 * as far as the call needs it. What the traced path takes the address of is in
 * here, since the compiler guards and clears other variables.
 */
struct gw_call {
	bool wanted;		/* false: nobody wants it, exit does nothing */
	bool plain;		/* two snapshots of arg.in and arg.out bytes, no more */
	u16 flags;		/* GPUWATCH_F_* */
	u64 begin;		/* gw_clock_mark() */
	struct gw_file_id file;
	struct gw_subject subject;
	struct gw_argument arg;
	struct gpuwatch_rec_ioctl fixed;
	u8 small[GW_STAGE_SMALL] __aligned(8);	/* captures, right behind fixed */
	struct gw_stage stage;			/* not when plain */
	struct gw_nested nested[2];
};

void gw_record_ioctl_enter(struct gw_call *call, struct file *file, unsigned int cmd,
			   unsigned long arg);
/*
 * The same where the caller may not sleep: user memory is read only where it is
 * present, and captures go into @buf, of @bytes bytes, not into the pool.
 */
void gw_record_ioctl_enter_atomic(struct gw_call *call, struct file *file, unsigned int cmd,
				  unsigned long arg, u16 flags, void *buf, u32 bytes);
void gw_record_ioctl_exit(struct gw_call *call, long ret);

struct gw_vma_range {
	unsigned long start, end, pgoff, vm_flags;
};

static inline struct gw_vma_range gw_vma_range_of(const struct vm_area_struct *vma)
{
	return (struct gw_vma_range) { vma->vm_start, vma->vm_end, vma->vm_pgoff, vma->vm_flags };
}

void gw_record_open(struct file *file, u64 begin, int ret, u16 flags);
void gw_record_mmap(const struct gw_file_id *file, const struct gw_vma_range *range,
		    u64 begin, int ret, u16 flags);
void gw_record_release(const struct gw_file_id *file, u64 begin, u16 flags);
/* @data: @bytes of it, a multiple of 8. */
void gw_record_image(struct gpuwatch_rec_image *image, const void *data, u32 bytes);
void gw_record_state(enum gpuwatch_state event, u32 value, int error, const char *name);

extern u64 gw_file_key[2];

/* Fills @id; false when the file is not one of an NVIDIA node. */
static __always_inline bool gw_record_file(struct file *file, struct gw_file_id *id)
{
	dev_t dev = file_inode(file)->i_rdev;

	id->kind = gw_node_kind(dev);
	id->rdev = dev; /* MINORBITS is 20: what the record wants */
	/* Tells files apart without telling where they lie in kernel memory. */
	id->file_id = ((u64)(unsigned long)file ^ gw_file_key[0]) * gw_file_key[1];
	return id->kind != GW_NODE_NONE;
}

int gw_record_init(void);
void gw_record_exit(void);

#endif
