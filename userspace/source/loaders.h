// SPDX-License-Identifier: Apache-2.0
// Which functions of libcuda take GPU code, and where in their arguments. Names
// only; where they lie in a file is elf_functions.h's.
#pragma once

#include <linux/gpuwatch.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuwatch::source {

struct Loader {
  gpuwatch_probe_kind kind;
  std::uint8_t argument;
  std::uint8_t size_argument;
};

// How to probe a function of that name, its later versions (_v2) and those for
// per-thread streams (_ptsz, _ptds) included; nothing for all others.
std::optional<Loader> loader_of(std::string_view symbol);

// Has every libcuda, and no library that merely uses one.
inline constexpr std::string_view kLibcudaMark = "cuInit";

}  // namespace gpuwatch::source
