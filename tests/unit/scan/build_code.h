// SPDX-License-Identifier: Apache-2.0
// Smallest bytes that have the headers of GPU code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

namespace gpuwatch::scan {

using Memory = std::vector<std::byte>;

inline void append(Memory& to, const Memory& what) {
  to.resize((to.size() + 7) & ~std::size_t{7});
  to.insert(to.end(), what.begin(), what.end());
}

inline void append_text(Memory& to, std::string_view text) {
  const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
  to.insert(to.end(), bytes, bytes + text.size());
}

template <typename T>
void put(Memory& memory, std::size_t at, T value) {
  std::memcpy(memory.data() + at, &value, sizeof value);
}

inline Memory container(std::uint64_t body) {
  Memory out(16 + body);
  put<std::uint64_t>(out, 0, 0x00100001BA55ED50);
  put<std::uint64_t>(out, 8, body);
  put<std::uint16_t>(out, 16, 2);
  put<std::uint16_t>(out, 18, 0x0101);
  put<std::uint32_t>(out, 20, 64);
  return out;
}

inline Memory cubin(std::uint16_t sections) {
  Memory out(64 + 64u * sections);
  std::memcpy(out.data(), "\177ELF\2\1\1\x41\x8", 9);
  put<std::uint16_t>(out, 16, 2);
  put<std::uint16_t>(out, 18, 190);
  put<std::uint64_t>(out, 40, 64);
  put<std::uint16_t>(out, 52, 64);
  put<std::uint16_t>(out, 58, 64);
  put<std::uint16_t>(out, 60, sections);
  return out;
}

}  // namespace gpuwatch::scan
