/* SPDX-License-Identifier: GPL-2.0 */
/*
 * node.h - which device numbers belong to the NVIDIA driver, and to which
 * family. Known from the names of char majors in /proc/devices, and from the
 * module that owns the device; never from a path.
 */
#ifndef GW_NODE_H
#define GW_NODE_H

#include <linux/compiler.h>
#include <linux/kdev_t.h>
#include <linux/types.h>
#include <linux/gpuwatch.h>

#define GW_NODE_NONE	0xff

/* Reads /proc/devices; sleeps. Where it can't, what is known is kept. */
void gw_node_refresh(void);

#define GW_MAJORS		512	/* CHRDEV_MAJOR_MAX */
#define GW_CTL_MINOR		255
#define GW_MODESET_MINOR	254

/* What a char major stands for; the minor decides within the first two. */
enum gw_family {
	GW_FAMILY_NONE,
	GW_FAMILY_FRONTEND,	/* nvidiactl, nvidiaN, nvidia-modeset */
	GW_FAMILY_UVM,		/* nvidia-uvm, nvidia-uvm-tools */
	GW_FAMILY_KINDS,	/* + enum gpuwatch_node_kind: all minors are of it */
};

#define GW_FAMILY_OF(kind) (GW_FAMILY_KINDS + (kind))

extern u8 gw_majors[GW_MAJORS];

/* enum gpuwatch_node_kind of @dev, GW_NODE_NONE when it is not NVIDIA's. */
static __always_inline u8 gw_node_kind(dev_t dev)
{
	unsigned int major = MAJOR(dev), minor = MINOR(dev);
	u8 family;

	if (unlikely(major >= GW_MAJORS))
		return GW_NODE_NONE;
	family = READ_ONCE(gw_majors[major]);
	if (likely(family == GW_FAMILY_FRONTEND)) {
		if (likely(minor == GW_CTL_MINOR))
			return GPUWATCH_NODE_CTL;
		return minor == GW_MODESET_MINOR ? GPUWATCH_NODE_MODESET : GPUWATCH_NODE_GPU;
	}
	if (family == GW_FAMILY_UVM)
		return minor == 0 ? GPUWATCH_NODE_UVM : GPUWATCH_NODE_UVM_TOOLS;
	return family >= GW_FAMILY_KINDS ? family - GW_FAMILY_KINDS : GW_NODE_NONE;
}

/* Learns from an open: @dev is owned by module @owner. */
u8 gw_node_learn(dev_t dev, const char *owner);

bool gw_node_is_driver(const char *module_name);

#endif
