// SPDX-License-Identifier: Apache-2.0
// Takes from the calling process all that parsing and comparing do not need: its
// rights, and the calls that reach for anything which is not open yet. It cannot
// be undone. It opens, closes and parses nothing itself.
#pragma once

namespace gpuwatch::probe::agent {

// A sanitizer's run-time library makes calls of its own: no filter under one.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kUnderSanitizer = true;
#elif defined(__has_feature)
inline constexpr bool kUnderSanitizer = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kUnderSanitizer = false;
#endif

// False, with errno: something is kept, so nothing may be parsed.
bool confine();

}  // namespace gpuwatch::probe::agent
