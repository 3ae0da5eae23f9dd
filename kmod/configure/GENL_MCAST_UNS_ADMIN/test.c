// SPDX-License-Identifier: GPL-2.0
/* Before, in stable kernels only: GENL_UNS_ADMIN_PERM as a group's flag, beside this bit. */
#include <net/genetlink.h>

const struct genl_multicast_group gw_probe = { .flags = GENL_UNS_ADMIN_PERM, .cap_sys_admin = 0 };
