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
#include <linux/gpuwatch.h>

#define GW_STAGE_SMALL	384		/* bytes on the stack */
#define GW_STAGE_LARGE	(48 * 1024)	/* bytes of a pool buffer */

struct gw_stage {
	u8 *buf;
	u32 used;
	u32 room;
	u16 nr;
	bool pooled;
	u8 small[GW_STAGE_SMALL] __aligned(8);
};

int gw_stage_init(void);
void gw_stage_exit(void);
u64 gw_stage_exhausted(void);

/* A pool buffer of GW_STAGE_LARGE bytes, or NULL; any context but NMI. */
void *gw_stage_pool_get(void);
void gw_stage_pool_put(void *buf);

/* Makes @stage ready for @want bytes of captures, heads included. */
void gw_stage_begin(struct gw_stage *stage, u32 want);
/* The same in memory of the caller's own, which outlives the stage. */
void gw_stage_begin_in(struct gw_stage *stage, void *buf, u32 bytes);
void gw_stage_end(struct gw_stage *stage);

/*
 * Adds a capture of @len bytes at user address @ptr. Returns the bytes staged,
 * or NULL when they could not be read; the capture then says why.
 */
const u8 *gw_stage_copy(struct gw_stage *stage, enum gpuwatch_capture_what what,
			u64 ptr, u32 want, u32 len, bool nofault);

#endif
