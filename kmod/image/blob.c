// SPDX-License-Identifier: GPL-2.0
/*
 * blob.c - copies of images, by id, for those who hold them. Single pages that
 * are charged to nobody: charged to the caller's cgroup they could have the
 * caller killed. So there is a budget, and an age at which holders that do not
 * care lose theirs.
 *
 * Lock: gw_blob_lock for the store, holders and ids; it is held for short
 * steps only. The budget is atomic.
 */
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "image/image.h"

/* Never OOM: better no image than a killed process. */
#define GW_BLOB_GFP (GFP_KERNEL | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

static unsigned long gw_total_max = 256UL << 20;
module_param_named(image_total_bytes, gw_total_max, ulong, 0644);
MODULE_PARM_DESC(image_total_bytes, "memory that copies of images may take, together");

static unsigned long gw_image_max = 128UL << 20;
module_param_named(image_max_bytes, gw_image_max, ulong, 0644);
MODULE_PARM_DESC(image_max_bytes, "largest image that is copied");

static unsigned int gw_age_ms = 60000;
module_param_named(image_age_ms, gw_age_ms, uint, 0644);
MODULE_PARM_DESC(image_age_ms, "how long a copy waits for its holders to fetch it and give it up");

static void gw_blob_expire(struct work_struct *work);
static DECLARE_DELAYED_WORK(gw_expire_work, gw_blob_expire);

static DEFINE_MUTEX(gw_blob_lock);
static DEFINE_XARRAY(gw_blobs);		/* by id; the lowest id is the oldest */
static u64 gw_blob_last_id;
static unsigned int gw_blob_nr;
static u64 gw_blob_stored, gw_blob_stored_bytes;
static atomic64_t gw_blob_used = ATOMIC64_INIT(0);

static bool gw_budget_take(u64 bytes)
{
	u64 used = atomic64_add_return(bytes, &gw_blob_used);

	if (used <= READ_ONCE(gw_total_max))
		return true;
	atomic64_sub(bytes, &gw_blob_used);
	return false;
}

u64 gw_blob_max(void)
{
	return READ_ONCE(gw_image_max);
}

struct gw_blob *gw_blob_alloc(u64 bytes)
{
	u64 pages = DIV_ROUND_UP(bytes, PAGE_SIZE);
	struct gw_blob *blob;

	if (bytes > READ_ONCE(gw_image_max))
		return ERR_PTR(-EFBIG);
	/* The table of pages counts too, or small images would be for free. */
	bytes = pages * PAGE_SIZE + pages * sizeof(struct page *) + sizeof(*blob);
	if (!gw_budget_take(bytes))
		return ERR_PTR(-ENOSPC);
	blob = kzalloc(sizeof(*blob), GW_BLOB_GFP);
	if (!blob)
		goto err_give_back;
	blob->pages = kvcalloc(pages, sizeof(*blob->pages), GW_BLOB_GFP);
	if (!blob->pages)
		goto err_free_blob;
	kref_init(&blob->ref);
	blob->charged = bytes;
	return blob;

err_free_blob:
	kfree(blob);
err_give_back:
	atomic64_sub(bytes, &gw_blob_used);
	return ERR_PTR(-ENOMEM);
}

static void gw_blob_free(struct kref *ref)
{
	struct gw_blob *blob = container_of(ref, struct gw_blob, ref);
	unsigned int i;

	for (i = 0; i < blob->nr_pages; i++)
		put_page(blob->pages[i]); /* a mapping has references of its own */
	kvfree(blob->pages);
	atomic64_sub(blob->charged, &gw_blob_used);
	kfree(blob);
}

void gw_blob_put(struct gw_blob *blob)
{
	kref_put(&blob->ref, gw_blob_free);
}

/* The page @pos lies in; pages are made one after the other. */
static u8 *gw_blob_at(struct gw_blob *blob, u64 pos)
{
	unsigned int index = pos >> PAGE_SHIFT;

	if (index == blob->nr_pages) {
		/* Cleared: the rest of the last page can be mapped too. */
		struct page *page = alloc_page(GW_BLOB_GFP | __GFP_ZERO);

		if (!page)
			return NULL;
		blob->pages[blob->nr_pages++] = page;
	}
	return (u8 *)page_address(blob->pages[index]) + offset_in_page(pos);
}

u64 gw_blob_fill(struct gw_blob *blob, u64 pos, u64 address, u64 bytes)
{
	u64 done = 0, want, left;
	u8 *to;

	while (done < bytes) {
		to = gw_blob_at(blob, pos + done);
		if (!to)
			break;
		want = min(bytes - done, PAGE_SIZE - (u64)offset_in_page(pos + done));
		left = copy_from_user(to, u64_to_user_ptr(address + done), want);
		done += want - left;
		if (left)
			break;
	}
	blob->bytes = pos + done;
	return done;
}

int gw_blob_zero(struct gw_blob *blob, u64 pos, u64 bytes)
{
	u8 *to;

	if (!bytes) /* at most 7, up to a multiple of 8: they lie in one page */
		return 0;
	to = gw_blob_at(blob, pos);
	if (!to)
		return -ENOMEM;
	memset(to, 0, bytes);
	blob->bytes = pos + bytes;
	return 0;
}

/* Takes it out of the store. Under the lock; what is given out stays. */
static void gw_blob_forget(struct gw_blob *blob)
{
	xa_erase(&gw_blobs, blob->id);
	gw_blob_nr--;
	gw_blob_put(blob);
}

u64 gw_blob_store(struct gw_blob *blob, u32 probe)
{
	u64 keys[GW_CONSUMERS_MAX], id = 0;
	unsigned int nr, nr_holding;

	mutex_lock(&gw_blob_lock);
	/* Under the lock, which a consumer that goes takes after it left the list. */
	nr = gw_emit_interested(GPUWATCH_REC_IMAGE, keys, &nr_holding);
	blob->nr_holders = nr_holding +
			   gw_probe_owners(probe, keys + nr_holding, nr - nr_holding);
	memcpy(blob->holders, keys, sizeof(keys[0]) * blob->nr_holders);
	blob->id = gw_blob_last_id + 1;
	blob->stored_ns = ktime_get_ns();
	if (blob->nr_holders && !xa_err(xa_store(&gw_blobs, blob->id, blob, GW_BLOB_GFP))) {
		id = ++gw_blob_last_id;
		gw_blob_stored++;
		gw_blob_stored_bytes += blob->bytes;
		if (!gw_blob_nr++)
			schedule_delayed_work(&gw_expire_work, msecs_to_jiffies(gw_age_ms) + 1);
	} else {
		if (blob->nr_holders)
			gw_image_lose(GPUWATCH_IMAGE_LOSS_NO_MEMORY);
		gw_blob_put(blob);
	}
	mutex_unlock(&gw_blob_lock);
	return id;
}

struct gw_blob *gw_blob_get(u64 id)
{
	struct gw_blob *blob;

	mutex_lock(&gw_blob_lock);
	blob = xa_load(&gw_blobs, id);
	if (blob)
		kref_get(&blob->ref);
	mutex_unlock(&gw_blob_lock);
	return blob;
}

static bool gw_blob_let_go(struct gw_blob *blob, u64 holder)
{
	unsigned int i;

	for (i = 0; i < blob->nr_holders; i++) {
		if (blob->holders[i] != holder)
			continue;
		blob->holders[i] = blob->holders[--blob->nr_holders];
		if (!blob->nr_holders)
			gw_blob_forget(blob);
		return true;
	}
	return false;
}

int gw_blob_drop(u64 id, u64 holder)
{
	struct gw_blob *blob;
	int err = -ENOENT;

	mutex_lock(&gw_blob_lock);
	blob = xa_load(&gw_blobs, id);
	if (blob && gw_blob_let_go(blob, holder))
		err = 0;
	mutex_unlock(&gw_blob_lock);
	return err;
}

void gw_blob_drop_all(u64 id)
{
	struct gw_blob *blob;

	mutex_lock(&gw_blob_lock);
	blob = xa_load(&gw_blobs, id);
	if (blob)
		gw_blob_forget(blob);
	mutex_unlock(&gw_blob_lock);
}

void gw_blob_holder_gone(u64 holder)
{
	struct gw_blob *blob;
	unsigned long id;

	mutex_lock(&gw_blob_lock);
	xa_for_each(&gw_blobs, id, blob)
		gw_blob_let_go(blob, holder);
	mutex_unlock(&gw_blob_lock);
}

static void gw_blob_expire(struct work_struct *work)
{
	u64 age_ns = (u64)READ_ONCE(gw_age_ms) * NSEC_PER_MSEC, now = ktime_get_ns();
	struct gw_blob *blob;
	unsigned long id;
	u64 left_ns;

	mutex_lock(&gw_blob_lock);
	xa_for_each(&gw_blobs, id, blob) {
		if (now < blob->stored_ns + age_ns) {
			left_ns = blob->stored_ns + age_ns - now;
			schedule_delayed_work(&gw_expire_work, nsecs_to_jiffies(left_ns) + 1);
			break;
		}
		gw_image_lose(GPUWATCH_IMAGE_LOSS_EXPIRED);
		gw_blob_forget(blob);
	}
	mutex_unlock(&gw_blob_lock);
}

void gw_blob_status(struct gpuwatch_image_status *status)
{
	mutex_lock(&gw_blob_lock);
	status->nr_stored = gw_blob_nr;
	status->stored = gw_blob_stored;
	status->stored_bytes = gw_blob_stored_bytes;
	mutex_unlock(&gw_blob_lock);
	status->used_bytes = atomic64_read(&gw_blob_used);
	status->total_max_bytes = READ_ONCE(gw_total_max);
	status->image_max_bytes = READ_ONCE(gw_image_max);
}

/* Every consumer is gone, and so is every hold. */
void gw_blob_exit(void)
{
	cancel_delayed_work_sync(&gw_expire_work);
	WARN_ON_ONCE(gw_blob_nr || atomic64_read(&gw_blob_used));
}
