/* SPDX-License-Identifier: GPL-2.0 */
/*
 * node.h - which device numbers belong to the NVIDIA driver, and to which
 * family. Known from the names of char majors in /proc/devices, and from the
 * module that owns the device; never from a path.
 */
#ifndef GW_NODE_H
#define GW_NODE_H

#include <linux/kdev_t.h>
#include <linux/types.h>
#include <linux/gpuwatch.h>

#define GW_NODE_NONE	0xff

/* Reads /proc/devices; sleeps. Without /proc the known names are kept. */
void gw_node_refresh(void);

/* enum gpuwatch_node_kind of @dev, GW_NODE_NONE when it is not NVIDIA's. */
u8 gw_node_kind(dev_t dev);

/* Learns from an open: @dev is owned by module @owner. */
u8 gw_node_learn(dev_t dev, const char *owner);

bool gw_node_is_driver(const char *module_name);

#endif
