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

#define GW_STAGE_INLINE	128	/* bytes copied by plain moves, without a call */

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

void gw_stage_begin_in(struct gw_stage *stage, void *buf, u32 bytes)
{
	stage->buf = buf;
	stage->room = bytes;
	stage->used = 0;
	stage->nr = 0;
	stage->pooled = false;
}

void gw_stage_begin(struct gw_stage *stage, u32 want)
{
	gw_stage_begin_in(stage, stage->small, sizeof(stage->small));
	if (unlikely(want > sizeof(stage->small))) {
		void *buf = gw_stage_pool_get();

		if (buf) {
			stage->buf = buf;
			stage->room = GW_STAGE_LARGE;
			stage->pooled = true;
		}
	}
}

void gw_stage_end(struct gw_stage *stage)
{
	if (unlikely(stage->pooled))
		gw_stage_pool_put(stage->buf);
}

/* copy_from_user() of so few bytes spends most of its time on the way there. */
static bool gw_stage_copy_words(u8 *to, const u8 __user *from, u32 len)
{
	u32 i;

	if (!user_access_begin(from, len))
		return false;
	for (i = 0; i + 8 <= len; i += 8)
		unsafe_get_user(*(u64 *)(to + i), (const u64 __user *)(from + i), fault);
	for (; i < len; i++)
		unsafe_get_user(to[i], from + i, fault);
	user_access_end();
	return true;
fault:
	user_access_end();
	return false;
}

static bool gw_stage_copy_bytes(u8 *to, const u8 __user *from, u32 len, bool nofault)
{
	bool ok;

	if (unlikely(nofault))
		pagefault_disable();
	if (likely(len <= GW_STAGE_INLINE))
		ok = gw_stage_copy_words(to, from, len);
	else if (nofault)
		ok = access_ok(from, len) && !__copy_from_user_inatomic(to, from, len);
	else
		ok = !copy_from_user(to, from, len);
	if (unlikely(nofault))
		pagefault_enable();
	return ok;
}

const u8 *gw_stage_copy(struct gw_stage *stage, enum gpuwatch_capture_what what,
			u64 ptr, u32 want, u32 len, bool nofault)
{
	struct gpuwatch_capture *head = (void *)(stage->buf + stage->used);
	u8 *bytes = (u8 *)(head + 1);
	u32 padded = ALIGN(len, 8);

	/* Only without a pool buffer; gw_stage_pool_get() has counted it. */
	if (unlikely(stage->room - stage->used < sizeof(*head)))
		return NULL;
	head->what = what;
	head->flags = len < want ? GPUWATCH_CAPF_CAPPED : 0;
	head->want = want;
	head->len = len;
	head->pad = 0;
	stage->used += sizeof(*head);
	stage->nr++;

	if (unlikely(padded > stage->room - stage->used)) {
		head->flags |= GPUWATCH_CAPF_NO_ROOM;
		goto err_no_bytes;
	}
	if (padded != len)
		*(u64 *)(bytes + padded - 8) = 0;
	if (unlikely(!gw_stage_copy_bytes(bytes, u64_to_user_ptr(ptr), len, nofault))) {
		head->flags |= GPUWATCH_CAPF_FAULT;
		goto err_no_bytes;
	}
	stage->used += padded;
	return bytes;

err_no_bytes:
	head->len = 0;
	return NULL;
}
