/* SPDX-License-Identifier: GPL-2.0 */
/*
 * stage.h - memory for what is copied from the caller, between the call and
 * its record. Small calls use the stack; larger ones take a buffer from a pool
 * filled at load, so that the traced path never allocates.
 */
#ifndef GW_STAGE_H
#define GW_STAGE_H

#include <linux/compiler.h>
#include <linux/types.h>
#include <linux/uaccess.h>
#include <linux/gpuwatch.h>

#define GW_STAGE_SMALL	384		/* bytes on the stack */
#define GW_STAGE_LARGE	(48 * 1024)	/* bytes of a pool buffer */
#define GW_STAGE_INLINE	128		/* bytes copied by plain moves, without a call */

struct gw_stage {
	u8 *buf;
	u32 used;
	u32 room;
	u16 nr;
	bool pooled;
	bool nofault;		/* user memory must not be faulted in */
};

int gw_stage_init(void);
void gw_stage_exit(void);
u64 gw_stage_exhausted(void);

/* A pool buffer of GW_STAGE_LARGE bytes, or NULL; any context but NMI. */
void *gw_stage_pool_get(void);
void gw_stage_pool_put(void *buf);

/* Moves to a pool buffer when there is one. */
void gw_stage_enlarge(struct gw_stage *stage);

/* Makes @stage ready, in memory of the caller's own. */
static inline void gw_stage_begin(struct gw_stage *stage, void *buf, u32 bytes, bool nofault)
{
	*stage = (struct gw_stage) { .buf = buf, .room = bytes, .nofault = nofault };
}

static inline void gw_stage_end(struct gw_stage *stage)
{
	if (stage->pooled)
		gw_stage_pool_put(stage->buf);
}

/*
 * @len is a multiple of 8. copy_from_user() of so few bytes would spend most of
 * its time on the way there.
 */
static __always_inline bool gw_stage_copy_words(u8 *to, const u8 __user *from, u32 len)
{
	if (!user_access_begin(from, len))
		return false;
	for (; len >= 32; len -= 32, to += 32, from += 32) {
		unsafe_get_user(((u64 *)to)[0], (const u64 __user *)from, fault);
		unsafe_get_user(((u64 *)to)[1], (const u64 __user *)from + 1, fault);
		unsafe_get_user(((u64 *)to)[2], (const u64 __user *)from + 2, fault);
		unsafe_get_user(((u64 *)to)[3], (const u64 __user *)from + 3, fault);
	}
	for (; len; len -= 8, to += 8, from += 8)
		unsafe_get_user(*(u64 *)to, (const u64 __user *)from, fault);
	user_access_end();
	return true;
fault:
	user_access_end();
	return false;
}

/* Every way but the straight one of gw_stage_copy(). */
const u8 *gw_stage_copy_slow(struct gw_stage *stage, struct gpuwatch_capture *head, u64 ptr);

static __always_inline void gw_capture_head(struct gpuwatch_capture *head,
					    enum gpuwatch_capture_what what, u32 want, u32 len)
{
	/* Two stores: what, flags, want; len, offset. */
	((u64 *)head)[0] = (u64)want << 32 | what |
			   (len < want ? GPUWATCH_CAPF_CAPPED << 16 : 0);
	((u64 *)head)[1] = len;
}

/*
 * Adds a capture of @len bytes at user address @ptr. Returns the bytes staged,
 * or NULL when they could not be read; the capture then says why.
 */
static inline const u8 *gw_stage_copy(struct gw_stage *stage, enum gpuwatch_capture_what what,
				      u64 ptr, u32 want, u32 len)
{
	struct gpuwatch_capture *head = (void *)(stage->buf + stage->used);
	u8 *bytes = (u8 *)(head + 1);
	u32 padded = ALIGN(len, 8);

	/* Only without a pool buffer; gw_stage_pool_get() has counted it. */
	if (unlikely(stage->room - stage->used < sizeof(*head)))
		return NULL;
	gw_capture_head(head, what, want, len);
	stage->used += sizeof(*head);
	stage->nr++;
	if (unlikely(stage->nofault || padded != len || len > GW_STAGE_INLINE ||
		     len > stage->room - stage->used))
		return gw_stage_copy_slow(stage, head, ptr);
	if (unlikely(!gw_stage_copy_words(bytes, u64_to_user_ptr(ptr), len))) {
		head->flags |= GPUWATCH_CAPF_FAULT;
		head->len = 0;
		return NULL;
	}
	stage->used += len;
	return bytes;
}

#endif
