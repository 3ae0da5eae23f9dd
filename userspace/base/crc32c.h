// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli) of a byte range. It finds damage, not forgery.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gpuwatch::base {

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);

// The same for processors without an instruction for it; open to tests.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes, std::uint32_t seed = 0);

}  // namespace gpuwatch::base
