// SPDX-License-Identifier: Apache-2.0
// A module for --selftest and for refreshing instruction caches: its kernel
// adds a constant that stands as an immediate in one instruction, so that a
// store of four bytes changes what it computes and nothing else.
#include <cstdint>

// 1234.5f is 0x449a5000, which occurs nowhere else in this module.
extern "C" __global__ void gpuwatch_selftest(float* out, const float* in) {
  const std::uint32_t i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = in[i] + 1234.5f;
}
