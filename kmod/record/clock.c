// SPDX-License-Identifier: GPL-2.0
/* clock.c - takes the TSC where sched_clock() does: stable, of known rate. */
#include <linux/mm.h>
#include <asm/tsc.h>

#include "record/clock.h"

u32 gw_tsc_mult __read_mostly;

void gw_clock_choose(void)
{
	u64 mult = 0;

	if (!check_tsc_unstable() && tsc_khz)
		mult = div_u64(1000000ULL << GW_TSC_SHIFT, tsc_khz);
	WRITE_ONCE(gw_tsc_mult, mult <= U32_MAX ? mult : 0);
}
