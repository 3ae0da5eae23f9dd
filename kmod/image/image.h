/* SPDX-License-Identifier: GPL-2.0 */
/*
 * image.h - GPU module images: breakpoints on the loaders of user-space
 * libraries, copies of what is handed to them, and their way to consumers. It
 * reads headers of images only to learn where they end; it never judges one,
 * never makes a call fail, and slows a caller by no more than the deadline.
 *
 * Way of an image:
 *	probe.c    hit: takes the arguments from the registers, nothing else
 *	capture.c  before the caller goes on, in its own context: measure.c, then
 *		   the copy into a blob, then the record
 *	blob.c     keeps it for its holders, by id, within the budget
 *	blob_file.c gives it out as a descriptor
 */
#ifndef GW_IMAGE_H
#define GW_IMAGE_H

#include <linux/kref.h>
#include <linux/types.h>
#include <linux/gpuwatch.h>

#include "record/consumer.h"

struct file;

/* --- probe.c -------------------------------------------------------------- */

/* What a hit needs to know of its probe, copied: the probe may go meanwhile. */
struct gw_probe_shape {
	u32 id;
	u32 library_dev;
	u64 library_ino;
	u32 kind;			/* enum gpuwatch_probe_kind */
	u32 argument;
	u32 size_argument;
	char symbol[GPUWATCH_SYMBOL_LEN];
};

/* @owner is the key of a consumer. */
int gw_probe_add(u64 owner, struct gpuwatch_probe *probe);
int gw_probe_remove(u64 owner, struct gpuwatch_probe_ref *ref);
void gw_probe_owner_gone(u64 owner);
/* Which of @keys own probe @id: those come first, and are counted. */
unsigned int gw_probe_owners(u32 id, u64 *keys, unsigned int nr);
void gw_probe_status(struct gpuwatch_image_status *status);

/* --- measure.c ------------------------------------------------------------ */

#define GW_IMAGE_PARTS	64		/* containers of one wrapper, at most */

struct gw_image_part {
	u64 address;
	u64 bytes;
};

/* One image, while it is being captured. */
struct gw_image {
	struct gpuwatch_rec_image rec;
	unsigned int nr_parts;
	struct gw_image_part parts[GW_IMAGE_PARTS];
	u8 head[GPUWATCH_PATH_MAX] __aligned(8);	/* rec.head_len of it */
};

/* When a capture has to give up, by gw_patience_over(). */
struct gw_patience {
	u64 until_ns;
};

#define GW_PATIENCE_KILLED	0xffff	/* the caller is dying: all else is moot */

/* 0, GPUWATCH_IMAGEF_DEADLINE or GW_PATIENCE_KILLED. May sleep. */
u16 gw_patience_over(const struct gw_patience *patience);

/*
 * Fills all of @image but what concerns the copy. @size is for PROBE_SIZED.
 * Returns GPUWATCH_IMAGEF_* of what went wrong, or GW_PATIENCE_KILLED.
 */
u16 gw_image_measure(struct gw_image *image, u32 probe_kind, u64 address, u64 size,
		     const struct gw_patience *patience);

/* --- capture.c ------------------------------------------------------------ */

/* In a handler: has the image at @address captured before the caller goes on. */
void gw_capture_later(const struct gw_probe_shape *shape, u64 address, u64 size);
void gw_image_lose(enum gpuwatch_image_loss why);
unsigned int gw_capture_pending(void);

/* --- blob.c --------------------------------------------------------------- */

struct gw_blob {
	struct kref ref;
	u64 id;
	u64 bytes;			/* filled so far */
	u64 charged;			/* of the budget */
	u64 stored_ns;
	unsigned int nr_pages;
	unsigned int nr_holders;
	u64 holders[GW_CONSUMERS_MAX];	/* keys of consumers; under the store's lock */
	struct page **pages;
};

/* Bytes of the largest image to copy. */
u64 gw_blob_max(void);
/* ERR_PTR(): -EFBIG over the budget of one, -ENOSPC of all, -ENOMEM. */
struct gw_blob *gw_blob_alloc(u64 bytes);
void gw_blob_put(struct gw_blob *blob);
/* Copies from the caller's memory to @pos; returns how many bytes came. */
u64 gw_blob_fill(struct gw_blob *blob, u64 pos, u64 address, u64 bytes);
int gw_blob_zero(struct gw_blob *blob, u64 pos, u64 bytes);
/* Takes the caller's reference; gives an id, or 0 when nobody wants to hold it. */
u64 gw_blob_store(struct gw_blob *blob, u32 probe);
struct gw_blob *gw_blob_get(u64 id);
int gw_blob_drop(u64 id, u64 holder);
void gw_blob_drop_all(u64 id);
void gw_blob_holder_gone(u64 holder);
void gw_blob_status(struct gpuwatch_image_status *status);
void gw_blob_exit(void);

/* --- blob_file.c ---------------------------------------------------------- */

/* A file that has a reference to @blob of its own. */
struct file *gw_blob_file(struct gw_blob *blob);

/* --- all of it ------------------------------------------------------------ */

void gw_image_status(struct gpuwatch_image_status *status);
void gw_image_consumer_gone(u64 key);
void gw_image_exit(void);

#endif
