/* SPDX-License-Identifier: GPL-2.0 */
/*
 * GW_UNINIT: leave a variable on the stack as it is. Kernels built with
 * INIT_STACK_ALL_ZERO clear every one, which for the state of a call costs
 * more than the rest of its record. Such a variable is filled before use.
 */
#ifndef GW_COMPAT_UNINIT_H
#define GW_COMPAT_UNINIT_H

#if __has_attribute(uninitialized)
#define GW_UNINIT __attribute__((uninitialized))
#else
#define GW_UNINIT
#endif

#endif
