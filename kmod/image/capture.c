// SPDX-License-Identifier: GPL-2.0
/*
 * capture.c - from a hit to a record. The work runs on the caller's way back to
 * user space, before the probed instruction: it may sleep and fault, and holds
 * no lock of uprobes. Whatever goes wrong, the caller goes on as if nothing had
 * been.
 *
 * A pending work holds a reference to the module, so that rmmod says EBUSY
 * rather than wait for a caller whose memory never comes.
 */
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/task_work.h>

#include "image/image.h"
#include "record/record.h"

#define GW_CHUNK_BYTES	65536ULL	/* copied between two looks at the clock */

static unsigned int gw_deadline_ms = 2000;
module_param_named(image_deadline_ms, gw_deadline_ms, uint, 0644);
MODULE_PARM_DESC(image_deadline_ms, "longest time a caller is kept for copying one image");

struct gw_capture {
	struct callback_head work;
	struct gw_probe_shape shape;
	u64 address;
	u64 size;
};

static atomic_t gw_captures_pending = ATOMIC_INIT(0);
static atomic64_t gw_image_lost[GPUWATCH_IMAGE_LOSS_MAX];

void gw_image_lose(enum gpuwatch_image_loss why)
{
	atomic64_inc(&gw_image_lost[why]);
}

unsigned int gw_capture_pending(void)
{
	return atomic_read(&gw_captures_pending);
}

/* One reason per image: the first that kept bytes out. */
static void gw_image_lose_for(u16 flags)
{
	if (flags & GPUWATCH_IMAGEF_MALFORMED)
		gw_image_lose(GPUWATCH_IMAGE_LOSS_MALFORMED);
	else if (flags & GPUWATCH_IMAGEF_TOO_BIG)
		gw_image_lose(GPUWATCH_IMAGE_LOSS_TOO_BIG);
	else if (flags & GPUWATCH_IMAGEF_OVER_BUDGET)
		gw_image_lose(GPUWATCH_IMAGE_LOSS_OVER_BUDGET);
	else if (flags & GPUWATCH_IMAGEF_NO_MEMORY)
		gw_image_lose(GPUWATCH_IMAGE_LOSS_NO_MEMORY);
	else if (flags & GPUWATCH_IMAGEF_FAULT)
		gw_image_lose(GPUWATCH_IMAGE_LOSS_FAULT);
	else if (flags & GPUWATCH_IMAGEF_DEADLINE)
		gw_image_lose(GPUWATCH_IMAGE_LOSS_DEADLINE);
}

/* Copies one part to @pos; flags of what kept bytes out. */
static u16 gw_copy_part(struct gw_blob *blob, u64 pos, const struct gw_image_part *part,
			const struct gw_patience *patience)
{
	u64 done = 0, want, got;
	u16 flags;

	while (done < part->bytes) {
		flags = gw_patience_over(patience);
		if (flags)
			return flags;
		want = min(part->bytes - done, GW_CHUNK_BYTES);
		got = gw_blob_fill(blob, pos + done, part->address + done, want);
		done += got;
		if (got < want) /* pages come as they are filled: which of both was it? */
			return blob->nr_pages * PAGE_SIZE <= pos + done ? GPUWATCH_IMAGEF_NO_MEMORY
									: GPUWATCH_IMAGEF_FAULT;
	}
	return 0;
}

/* Copies all parts, each from a multiple of 8 on. */
static u16 gw_copy_parts(struct gw_blob *blob, const struct gw_image *image,
			 const struct gw_patience *patience)
{
	unsigned int i;
	u16 flags;

	for (i = 0; i < image->nr_parts; i++) {
		u64 pos = ALIGN(blob->bytes, 8);

		if (gw_blob_zero(blob, blob->bytes, pos - blob->bytes))
			return GPUWATCH_IMAGEF_NO_MEMORY;
		flags = gw_copy_part(blob, pos, &image->parts[i], patience);
		if (flags)
			return flags;
	}
	return 0;
}

static u16 gw_store_image(struct gw_image *image, const struct gw_patience *patience)
{
	struct gw_blob *blob = gw_blob_alloc(image->rec.bytes);
	u16 flags;

	if (IS_ERR(blob)) {
		switch (PTR_ERR(blob)) {
		case -EFBIG:
			return GPUWATCH_IMAGEF_TOO_BIG;
		case -ENOSPC:
			return GPUWATCH_IMAGEF_OVER_BUDGET;
		default:
			return GPUWATCH_IMAGEF_NO_MEMORY;
		}
	}
	flags = gw_copy_parts(blob, image, patience);
	if (flags == GW_PATIENCE_KILLED || !blob->bytes) {
		gw_blob_put(blob);
		return flags;
	}
	image->rec.copied_bytes = blob->bytes;
	image->rec.id = gw_blob_store(blob, image->rec.probe);
	if (!image->rec.id)
		image->rec.copied_bytes = 0;
	return flags;
}

static void gw_capture_image(const struct gw_capture *capture)
{
	u64 begin = ktime_get_ns();
	struct gw_patience patience = {
		.until_ns = begin + (u64)READ_ONCE(gw_deadline_ms) * NSEC_PER_MSEC,
	};
	u64 keys[GW_CONSUMERS_MAX];
	unsigned int nr_holding, padded;
	struct gw_image *image;
	u16 flags;

	/* Filters may say that nobody wants it: then it is not copied either. */
	if (!gw_emit_interested(GPUWATCH_REC_IMAGE, keys, &nr_holding))
		return;
	image = kzalloc(sizeof(*image), GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	if (!image) {
		gw_image_lose(GPUWATCH_IMAGE_LOSS_NO_MEMORY);
		return;
	}
	image->rec.probe = capture->shape.id;
	image->rec.library_ino = capture->shape.library_ino;
	image->rec.library_dev = capture->shape.library_dev;
	memcpy(image->rec.symbol, capture->shape.symbol, sizeof(image->rec.symbol));
	flags = gw_image_measure(image, capture->shape.kind, capture->address, capture->size,
				 &patience);
	if (flags != GW_PATIENCE_KILLED && image->nr_parts && image->rec.bytes)
		flags |= gw_store_image(image, &patience);
	if (flags == GW_PATIENCE_KILLED || fatal_signal_pending(current)) {
		if (image->rec.id)
			gw_blob_drop_all(image->rec.id);
		gw_image_lose(GPUWATCH_IMAGE_LOSS_KILLED);
		goto out_free;
	}
	gw_image_lose_for(flags);
	image->rec.flags |= flags;
	/* Text that memory ends before its NUL: what came is all there is. */
	if (image->rec.kind == GPUWATCH_IMAGE_TEXT && flags & GPUWATCH_IMAGEF_FAULT &&
	    !(image->rec.flags & GPUWATCH_IMAGEF_SIZED))
		image->rec.bytes = image->rec.copied_bytes;
	padded = ALIGN(image->rec.head_len, 8);
	memset(image->head + image->rec.head_len, 0, padded - image->rec.head_len);
	image->rec.duration_ns = ktime_get_ns() - begin;
	gw_record_image(&image->rec, image->head, padded);
out_free:
	kfree(image);
}

static void gw_capture_run(struct callback_head *work)
{
	struct gw_capture *capture = container_of(work, struct gw_capture, work);

	/* On the way out of a process its memory is gone already. */
	if (current->mm && !(current->flags & PF_EXITING) && !fatal_signal_pending(current))
		gw_capture_image(capture);
	else
		gw_image_lose(GPUWATCH_IMAGE_LOSS_KILLED);
	kfree(capture);
	atomic_dec(&gw_captures_pending);
	module_put(THIS_MODULE); /* gw_image_exit() waits until we left the text */
}

void gw_capture_later(const struct gw_probe_shape *shape, u64 address, u64 size)
{
	struct gw_capture *capture;

	capture = kmalloc(sizeof(*capture), GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN);
	if (!capture) {
		gw_image_lose(GPUWATCH_IMAGE_LOSS_NO_MEMORY);
		return;
	}
	init_task_work(&capture->work, gw_capture_run);
	capture->shape = *shape;
	capture->address = address;
	capture->size = size;
	/* A probe is set, so a file of ours is open, so there is one already. */
	__module_get(THIS_MODULE);
	atomic_inc(&gw_captures_pending);
	if (task_work_add(current, &capture->work, TWA_RESUME)) {
		gw_image_lose(GPUWATCH_IMAGE_LOSS_KILLED);
		atomic_dec(&gw_captures_pending);
		module_put(THIS_MODULE);
		kfree(capture);
	}
}

void gw_image_status(struct gpuwatch_image_status *status)
{
	unsigned int i;

	status->pending = gw_capture_pending();
	for (i = 0; i < GPUWATCH_IMAGE_LOSS_MAX; i++)
		status->lost[i] = atomic64_read(&gw_image_lost[i]);
	gw_probe_status(status);
	gw_blob_status(status);
}

void gw_image_consumer_gone(u64 key)
{
	gw_probe_owner_gone(key);
	gw_blob_holder_gone(key);
}

void gw_image_exit(void)
{
	WARN_ON_ONCE(gw_capture_pending());
	/* Who gave back the last reference may still be about to return. */
	synchronize_rcu_tasks();
	gw_blob_exit();
}
