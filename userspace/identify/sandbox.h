// SPDX-License-Identifier: Apache-2.0
// Takes from the calling process all that parsing does not need. It cannot be
// undone.
#pragma once

#include "base/result.h"

namespace gpuwatch::identify {

// Its shadow memory needs terabytes of address space, and a few more calls.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kAddressSanitizer = __has_feature(address_sanitizer);
#else
inline constexpr bool kAddressSanitizer = false;
#endif

// `address_space` bounds its memory, in bytes; 0: not bounded (sanitizers map
// terabytes).
base::Status enter_sandbox(unsigned long address_space);

}  // namespace gpuwatch::identify
