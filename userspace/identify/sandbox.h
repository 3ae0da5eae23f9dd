// SPDX-License-Identifier: Apache-2.0
// Takes from the calling process all that parsing does not need. It cannot be
// undone.
#pragma once

#include "base/result.h"

namespace gpuwatch::identify {

// `address_space` bounds its memory, in bytes; 0: not bounded (sanitizers map
// terabytes).
base::Status enter_sandbox(unsigned long address_space);

}  // namespace gpuwatch::identify
