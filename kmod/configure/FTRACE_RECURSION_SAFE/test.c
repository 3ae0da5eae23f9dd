// SPDX-License-Identifier: GPL-2.0
/* The flag's meaning was inverted and its name lost in a25d036d939a (v5.11). */
#include <linux/ftrace.h>

int gw_probe = FTRACE_OPS_FL_RECURSION_SAFE;
