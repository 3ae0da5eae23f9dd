// SPDX-License-Identifier: Apache-2.0
// The SHA-256 compression function by the CPU's SHA instructions, over one or
// two independent states. It does no padding; HashBatch does.
#pragma once

#include <cstddef>
#include <cstdint>

namespace gpuwatch::identify {

// This CPU has the instructions, and this build knows how to use them.
bool sha_ni_usable();

// Only where sha_ni_usable(). `blocks` blocks of 64 bytes from each pointer.
void sha_ni_one(std::uint32_t state[8], const std::uint8_t* data, std::size_t blocks);
void sha_ni_two(std::uint32_t state_a[8], const std::uint8_t* data_a, std::uint32_t state_b[8],
                const std::uint8_t* data_b, std::size_t blocks);

}  // namespace gpuwatch::identify
