// SPDX-License-Identifier: GPL-2.0
/* ftrace callbacks take struct ftrace_regs since d19ad0775dcd (v5.11). */
#include <linux/ftrace.h>

void gw_probe(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
	      struct ftrace_regs *fregs);
ftrace_func_t gw_probe_ptr = gw_probe;
