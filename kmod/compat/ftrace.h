/* SPDX-License-Identifier: GPL-2.0 */
/* Redirecting functions by ftrace: callback type, flags, setting the address. */
#ifndef GW_COMPAT_FTRACE_H
#define GW_COMPAT_FTRACE_H

#include <linux/ftrace.h>
#include <asm/cpufeature.h>

/*
 * PERMANENT: with the sysctl kernel.ftrace_enabled at 0 the redirect would be
 * silently dead. So registering fails then (and kretprobe is used), and the
 * sysctl can't be set to 0 while we are in.
 *
 * Where ftrace passes arguments (x86: 02a474ca266a and 2860cd8a2353, v5.11) it
 * also takes the instruction pointer from them; before, full registers have
 * to be saved, and a callback had to promise that it does not recurse.
 */
#ifdef HAS_FTRACE_REGS
#define GW_FTRACE_ARG struct ftrace_regs
#define GW_FTRACE_FLAGS (FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT)
#else
#define GW_FTRACE_ARG struct pt_regs
#define GW_FTRACE_FLAGS (FTRACE_OPS_FL_IPMODIFY | FTRACE_OPS_FL_PERMANENT | \
			 FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_RECURSION_SAFE)
#endif

/* Indirect branches must land on ENDBR64 (IBT) or behind a type hash (kCFI). */
static inline bool gw_must_enter_at_start(void)
{
#ifdef X86_FEATURE_IBT
	if (boot_cpu_has(X86_FEATURE_IBT))
		return true;
#endif
	return IS_ENABLED(CONFIG_CFI_CLANG) || IS_ENABLED(CONFIG_CFI);
}

#ifdef HAS_FTRACE_REGS_SET_IP
#define gw_ftrace_set_ip(fregs, addr) ftrace_regs_set_instruction_pointer(fregs, addr)
#elif defined(HAS_FTRACE_REGS)
#define gw_ftrace_set_ip(fregs, addr) ftrace_instruction_pointer_set(fregs, addr)
#else
#define gw_ftrace_set_ip(regs, addr) ((regs)->ip = (addr))
#endif

#endif
