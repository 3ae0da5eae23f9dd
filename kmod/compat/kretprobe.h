/* SPDX-License-Identifier: GPL-2.0 */
/* From an instance of a kretprobe to its probe. */
#ifndef GW_COMPAT_KRETPROBE_H
#define GW_COMPAT_KRETPROBE_H

#include <linux/kprobes.h>

static inline struct kretprobe *gw_kretprobe(struct kretprobe_instance *ri)
{
#ifdef HAS_GET_KRETPROBE
	return get_kretprobe(ri);
#else
	return ri->rp;
#endif
}

#endif
