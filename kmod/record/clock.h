/* SPDX-License-Identifier: GPL-2.0 */
/*
 * clock.h - how long a call took. Where the kernel trusts the TSC, two reads
 * of it cost less than the one of CLOCK_MONOTONIC that they replace.
 */
#ifndef GW_CLOCK_H
#define GW_CLOCK_H

#include <linux/compiler.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <asm/msr.h>

#define GW_TSC_SHIFT 31

extern u32 gw_tsc_mult;	/* ns = cycles * mult >> GW_TSC_SHIFT; 0: do not use it */

/* Decides on the clock; before hooks go in. A mark from before stays usable. */
void gw_clock_choose(void);

/* Bit 0 tells which clock it is, in case the choice changes during the call. */
static __always_inline u64 gw_clock_mark(void)
{
	if (likely(READ_ONCE(gw_tsc_mult)))
		return rdtsc() | 1;
	return ktime_get_ns() & ~1ULL;
}

static __always_inline u64 gw_clock_since(u64 mark, u64 now_ns)
{
	u32 mult = READ_ONCE(gw_tsc_mult);

	if (likely(mark & 1 && mult))
		return mul_u64_u32_shr(rdtsc() - mark, mult, GW_TSC_SHIFT);
	return mark & 1 ? 0 : now_ns - mark;
}

#endif
