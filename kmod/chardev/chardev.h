/* SPDX-License-Identifier: GPL-2.0 */
/* chardev.h - /dev/gpuwatch. Checks of arguments and privileges live here. */
#ifndef GW_CHARDEV_H
#define GW_CHARDEV_H

int gw_chardev_init(void);
void gw_chardev_exit(void);

#endif
