// SPDX-License-Identifier: GPL-2.0
/* get_file_rcu() takes the address of the pointer since 0ede61d8589c (v6.7). */
#include <linux/fs.h>

struct file *gw_probe(struct file __rcu **file);
struct file *gw_probe(struct file __rcu **file)
{
	return get_file_rcu(file);
}
