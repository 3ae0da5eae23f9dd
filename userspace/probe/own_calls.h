// SPDX-License-Identifier: Apache-2.0
// The record of this process's own driver calls. Linking own_calls.cpp puts an
// ioctl() of ours before libc's, for libcuda, too; only a program of its own may
// do that.
#pragma once

#include "probe/ranges.h"

namespace gpuwatch::probe {

// A copy of what is mapped now; safe while other threads call the driver.
RangeRecord own_ranges();

}  // namespace gpuwatch::probe
