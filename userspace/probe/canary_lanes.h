// SPDX-License-Identifier: Apache-2.0
// The canary's work on the CPU, many threads' at a time: one after the other takes
// a fifth of a second for a large GPU, which is too much each second for eight. The
// same bits as kernels::canary_work, whatever the CPU has.
#pragma once

#include <cstdint>
#include <span>

namespace gpuwatch::probe {

// What threads first, first + 1, ... compute.
void canary_works(std::uint64_t seed, std::uint32_t first, std::span<std::uint64_t> out);

}  // namespace gpuwatch::probe
