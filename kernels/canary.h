// SPDX-License-Identifier: Apache-2.0
// Work whose result is known: integers and IEEE floats that come out the same
// bit for bit on every conforming device, seeded by a nonce, and what a block
// of the canary writes down about where and how fast it ran.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/sha256.h"

namespace gpuwatch::kernels {

inline constexpr std::uint32_t kCanaryThreads = 128;
inline constexpr std::uint32_t kCanarySteps = 256;

// What one thread computes. Multiply and add as one rounding, so that neither
// compiler may choose.
GPUWATCH_BOTH std::uint64_t canary_work(std::uint64_t seed, std::uint32_t thread) {
  std::uint64_t x = seed + 0x9e3779b97f4a7c15ull * (thread + 1);
  float f = 1.0f + static_cast<float>(thread % 977) * 0.0009765625f;
  double d = 1.0 + static_cast<double>(thread % 991) * 0.0009765625;
  for (std::uint32_t step = 0; step < kCanarySteps; ++step) {
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    x *= 0x2545f4914f6cdd1dull;
    const float a = static_cast<float>(static_cast<std::uint32_t>(x >> 52)) * 0.000244140625f;
    const double b = static_cast<double>(static_cast<std::uint32_t>(x >> 44)) * 0.00000095367431640625;
#if defined(__CUDA_ARCH__)
    f = __fmaf_rn(f, 0.75f, a);
    d = __fma_rn(d, 0.75, b);
    d = __dsqrt_rn(d);
    f = __fdiv_rn(1.0f, __fadd_rn(f, 1.0f));
#else
    f = std::fma(f, 0.75f, a);
    d = std::fma(d, 0.75, b);
    d = std::sqrt(d);
    f = 1.0f / (f + 1.0f);
#endif
  }
  std::uint32_t bits;
  std::uint64_t wide;
  __builtin_memcpy(&bits, &f, sizeof bits);
  __builtin_memcpy(&wide, &d, sizeof wide);
  return x ^ wide ^ (static_cast<std::uint64_t>(bits) << 17);
}

struct CanaryBlock {
  std::uint32_t sm;
  std::uint32_t spins;
  std::uint64_t time_begin_ns;  // globaltimer
  std::uint64_t time_end_ns;
  std::uint64_t clock_begin;  // clock64
  std::uint64_t clock_end;
};

}  // namespace gpuwatch::kernels
