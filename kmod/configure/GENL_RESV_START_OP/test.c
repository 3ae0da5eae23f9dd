// SPDX-License-Identifier: GPL-2.0
/* genl_family.resv_start_op came in 9c5d03d36251 (v6.1). */
#include <net/genetlink.h>

const struct genl_family gw_probe = { .resv_start_op = 1 };
