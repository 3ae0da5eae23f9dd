/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When an inode was made or last changed. The field became private, with
 * inode_get_ctime() before it, by 9b6304c1d537 and 077c212f0344 (v6.6).
 */
#ifndef GW_COMPAT_INODE_TIMES_H
#define GW_COMPAT_INODE_TIMES_H

#include <linux/fs.h>
#include <linux/time64.h>

static inline u64 gw_inode_ctime_ns(const struct inode *inode)
{
#ifdef HAS_INODE_GET_CTIME
	const struct timespec64 ctime = inode_get_ctime(inode);
#else
	const struct timespec64 ctime = inode->i_ctime;
#endif

	return timespec64_to_ns(&ctime);
}

#endif
