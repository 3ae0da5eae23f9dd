/* SPDX-License-Identifier: GPL-2.0 */
/* Where a module's text lies. */
#ifndef GW_COMPAT_MODULE_H
#define GW_COMPAT_MODULE_H

#include <linux/module.h>

static inline unsigned long gw_module_text(struct module *mod, unsigned long *bytes)
{
#ifdef HAS_MODULE_MEM
	*bytes = mod->mem[MOD_TEXT].size;
	return (unsigned long)mod->mem[MOD_TEXT].base;
#else
	*bytes = mod->core_layout.text_size;
	return (unsigned long)mod->core_layout.base;
#endif
}

#endif
