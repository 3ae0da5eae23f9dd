// SPDX-License-Identifier: Apache-2.0
// The SHA-256 compression function over sixteen independent states at once, by
// AVX-512. It does no padding; HashBatch does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuwatch::identify {

inline constexpr std::size_t kWideLanes = 16;

// Word w of lane l is words[w][l].
struct alignas(64) WideState {
  std::uint32_t words[8][kWideLanes];
};

bool sha_wide_usable();

// Only where sha_wide_usable(). `blocks` blocks of 64 bytes from every pointer.
void sha_wide(WideState& state, const std::uint8_t* const data[kWideLanes], std::size_t blocks);

}  // namespace gpuwatch::identify
