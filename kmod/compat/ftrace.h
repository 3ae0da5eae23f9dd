/* SPDX-License-Identifier: GPL-2.0 */
/* Redirecting a function by ftrace: callback type, flags, setting the address. */
#ifndef GW_COMPAT_FTRACE_H
#define GW_COMPAT_FTRACE_H

#include <linux/ftrace.h>

#ifdef HAS_FTRACE_REGS
#define GW_FTRACE_ARG struct ftrace_regs
#else
#define GW_FTRACE_ARG struct pt_regs
#endif

/*
 * PERMANENT: with the sysctl kernel.ftrace_enabled at 0 the redirect would be
 * silently dead. So registering fails then (and kretprobe is used), and the
 * sysctl can't be set to 0 while we are in.
 */
#ifdef HAS_FTRACE_REGS_SET_IP
/* v6.3 and on: arguments suffice, full registers cost 50 more. */
#define GW_FTRACE_FLAGS (FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT)
#define gw_ftrace_set_ip(fregs, addr) ftrace_regs_set_instruction_pointer(fregs, addr)
#elif defined(HAS_FTRACE_REGS)
#define GW_FTRACE_FLAGS (FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT | FTRACE_OPS_FL_SAVE_REGS)
#define gw_ftrace_set_ip(fregs, addr) (ftrace_get_regs(fregs)->ip = (addr))
#elif defined(HAS_FTRACE_RECURSION_SAFE)
/* Before v5.11 a callback had to promise that it does not recurse. */
#define GW_FTRACE_FLAGS \
	(FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT | FTRACE_OPS_FL_SAVE_REGS | \
	 FTRACE_OPS_FL_RECURSION_SAFE)
#define gw_ftrace_set_ip(regs, addr) ((regs)->ip = (addr))
#else
#error "gpuwatch: this kernel's ftrace callback is not known"
#endif

#endif
