// SPDX-License-Identifier: GPL-2.0
/* struct module_layout became mem[] in ac3b43283923 (v6.4). */
#include <linux/module.h>

void *gw_probe(struct module *mod);
void *gw_probe(struct module *mod)
{
	return mod->mem[MOD_TEXT].base;
}
