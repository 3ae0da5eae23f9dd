// SPDX-License-Identifier: GPL-2.0
/* get_kretprobe() replaced kretprobe_instance.rp in d741bf41d7c7 (v5.11). */
#include <linux/kprobes.h>

struct kretprobe *gw_probe(struct kretprobe_instance *ri);
struct kretprobe *gw_probe(struct kretprobe_instance *ri)
{
	return get_kretprobe(ri);
}
