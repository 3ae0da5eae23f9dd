// SPDX-License-Identifier: GPL-2.0
/* Privileged multicast groups by flags came in 44ec98ea5ea9 (v6.7), and in stable kernels. */
#include <net/genetlink.h>

const struct genl_multicast_group gw_probe = { .flags = GENL_MCAST_CAP_NET_ADMIN };
