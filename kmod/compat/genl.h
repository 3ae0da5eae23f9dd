/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Groups of generic netlink that need CAP_NET_ADMIN to join, and sending to
 * them. By flags since 44ec98ea5ea9 (v6.7) and its backports; in backports to
 * older kernels by another flag; where there is none, anybody can join, and
 * sockets whose openers were not privileged are left out of each message.
 */
#ifndef GW_COMPAT_GENL_H
#define GW_COMPAT_GENL_H

#include <linux/capability.h>
#include <linux/fs.h>
#include <linux/user_namespace.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#ifdef HAS_GENL_MCAST_CAP
#define GW_GENL_GROUP_FLAGS .flags = GENL_MCAST_CAP_NET_ADMIN
#elif defined(HAS_GENL_MCAST_UNS_ADMIN)
#define GW_GENL_GROUP_FLAGS .flags = GENL_UNS_ADMIN_PERM
#else
#define GW_GENL_GROUP_FLAGS
#endif

/* From which command on headers are checked to the last bit: all, where it exists. */
#ifdef HAS_GENL_RESV_START_OP
#define GW_GENL_RESV_START .resv_start_op = 1,
#else
#define GW_GENL_RESV_START
#endif

#if defined(HAS_GENL_MCAST_CAP) || defined(HAS_GENL_MCAST_UNS_ADMIN)
static inline int gw_genl_multicast(const struct genl_family *family, struct sk_buff *skb,
				    unsigned int group)
{
	return genlmsg_multicast(family, skb, 0, group, GFP_KERNEL);
}
#else
/* Non-zero: not to this one. */
static inline int gw_genl_unprivileged(struct sock *sk, struct sk_buff *skb, void *data)
{
	const struct socket *socket = READ_ONCE(sk->sk_socket);

	return !socket || !socket->file ||
	       !file_ns_capable(socket->file, &init_user_ns, CAP_NET_ADMIN);
}

static inline int gw_genl_multicast(const struct genl_family *family, struct sk_buff *skb,
				    unsigned int group)
{
	NETLINK_CB(skb).dst_group = family->mcgrp_offset + group;
	return netlink_broadcast_filtered(init_net.genl_sock, skb, 0,
					  family->mcgrp_offset + group, GFP_KERNEL,
					  gw_genl_unprivileged, NULL);
}
#endif

#endif
