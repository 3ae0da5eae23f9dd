// SPDX-License-Identifier: GPL-2.0
/*
 * ftrace_regs_set_instruction_pointer() replaced
 * ftrace_instruction_pointer_set() in 94d095ffa0e1 (v6.3); from then on a
 * redirect needs no full pt_regs where HAVE_DYNAMIC_FTRACE_WITH_ARGS is set.
 */
#include <linux/ftrace.h>

#ifndef CONFIG_HAVE_DYNAMIC_FTRACE_WITH_ARGS
#error "no ftrace_regs with arguments"
#endif
void gw_probe(struct ftrace_regs *fregs);
void gw_probe(struct ftrace_regs *fregs)
{
	ftrace_regs_set_instruction_pointer(fregs, 0);
}
