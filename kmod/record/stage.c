// SPDX-License-Identifier: GPL-2.0
/*
 * stage.c - the pool and the copies from user memory. The copy may fault pages
 * in, as the driver's own copy is about to; with nofault it takes only what is
 * there.
 */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>

#include "record/stage.h"

static DEFINE_RAW_SPINLOCK(gw_stage_lock);
static void **gw_stage_free;	/* stack of free buffers */
static unsigned int gw_stage_nr_free;
static unsigned int gw_stage_nr;
static atomic64_t gw_stage_missing = ATOMIC64_INIT(0);

int gw_stage_init(void)
{
	unsigned int nr = 32 + 2 * num_online_cpus();

	gw_stage_free = kcalloc(nr, sizeof(*gw_stage_free), GFP_KERNEL);
	if (!gw_stage_free)
		return -ENOMEM;
	for (; gw_stage_nr < nr; gw_stage_nr++) {
		void *buf = kvmalloc(GW_STAGE_LARGE, GFP_KERNEL);

		if (!buf) {
			gw_stage_exit();
			return -ENOMEM;
		}
		gw_stage_free[gw_stage_nr] = buf;
		gw_stage_nr_free++;
	}
	return 0;
}

void gw_stage_exit(void)
{
	WARN_ON_ONCE(gw_stage_nr_free != gw_stage_nr);
	while (gw_stage_nr_free > 0)
		kvfree(gw_stage_free[--gw_stage_nr_free]);
	gw_stage_nr = 0;
	kfree(gw_stage_free);
	gw_stage_free = NULL;
}

u64 gw_stage_exhausted(void)
{
	return atomic64_read(&gw_stage_missing);
}

void *gw_stage_pool_get(void)
{
	unsigned long flags;
	void *buf = NULL;

	raw_spin_lock_irqsave(&gw_stage_lock, flags);
	if (gw_stage_nr_free > 0)
		buf = gw_stage_free[--gw_stage_nr_free];
	raw_spin_unlock_irqrestore(&gw_stage_lock, flags);
	if (!buf)
		atomic64_inc(&gw_stage_missing);
	return buf;
}

void gw_stage_pool_put(void *buf)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&gw_stage_lock, flags);
	gw_stage_free[gw_stage_nr_free++] = buf;
	raw_spin_unlock_irqrestore(&gw_stage_lock, flags);
}

void gw_stage_enlarge(struct gw_stage *stage)
{
	void *buf = gw_stage_pool_get();

	if (!buf)
		return;
	memcpy(buf, stage->buf, stage->used);
	stage->buf = buf;
	stage->room = GW_STAGE_LARGE;
	stage->pooled = true;
}

static bool gw_stage_copy_bytes(u8 *to, const u8 __user *from, u32 len, bool nofault)
{
	bool ok;

	if (!nofault)
		return !copy_from_user(to, from, len);
	pagefault_disable();
	ok = access_ok(from, len) && !__copy_from_user_inatomic(to, from, len);
	pagefault_enable();
	return ok;
}

/* @head is filled in and counted. */
const u8 *gw_stage_copy_slow(struct gw_stage *stage, struct gpuwatch_capture *head, u64 ptr)
{
	u8 *bytes = (u8 *)(head + 1);
	u32 padded = ALIGN(head->len, 8);

	if (padded > stage->room - stage->used) {
		head->flags |= GPUWATCH_CAPF_NO_ROOM;
		goto err_no_bytes;
	}
	if (padded != head->len)
		*(u64 *)(bytes + padded - 8) = 0;
	if (!gw_stage_copy_bytes(bytes, u64_to_user_ptr(ptr), head->len, stage->nofault)) {
		head->flags |= GPUWATCH_CAPF_FAULT;
		goto err_no_bytes;
	}
	stage->used += padded;
	return bytes;

err_no_bytes:
	head->len = 0;
	return NULL;
}
