// SPDX-License-Identifier: Apache-2.0
// Where GPU code may begin in memory, by its first bytes, and how long it then
// is. A find is a guess that the real parser must confirm; nothing is parsed
// here beyond the sizes in the headers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace gpuwatch::scan {

enum class FindKind : std::uint8_t { kContainer, kCubin, kPtx };

struct Find {
  FindKind kind = FindKind::kContainer;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

// Reads memory at an address; gives how much of `out` could be filled.
using ReadMemory = std::function<std::size_t(std::uint64_t address, std::span<std::byte> out)>;

// Places in `window` (which lies at `address`, a multiple of 8) where a magic
// stands and the headers make sense. `end` is the end of the mapping: what does
// not fit before it is no code. The size of PTX is found by reading on.
std::vector<Find> find_code(std::span<const std::byte> window, std::uint64_t address, std::uint64_t end,
                            const ReadMemory& read, std::uint64_t max_bytes);

// So much of a window must be seen again with the next one.
inline constexpr std::size_t kOverlap = 128;

}  // namespace gpuwatch::scan
