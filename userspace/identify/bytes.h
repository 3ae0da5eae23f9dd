// SPDX-License-Identifier: Apache-2.0
// Bytes from outside and little-endian numbers in them. Every load is checked
// against the end of the span it reads from; out of range is nullopt or zero
// length, never a read.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace gpuwatch::identify {

using Bytes = std::span<const std::uint8_t>;

// Holds without overflow for any offset and length.
constexpr bool fits(std::uint64_t offset, std::uint64_t length, std::uint64_t size) {
  return length <= size && offset <= size - length;
}

// The part of `bytes` at [offset, offset + length), empty when out of range.
inline Bytes slice(Bytes bytes, std::uint64_t offset, std::uint64_t length) {
  return fits(offset, length, bytes.size()) ? bytes.subspan(offset, length) : Bytes();
}

// For offsets that the caller has checked with fits().
template <typename T>
T load(Bytes bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
std::optional<T> try_load(Bytes bytes, std::uint64_t offset) {
  if (!fits(offset, sizeof(T), bytes.size())) return std::nullopt;
  return load<T>(bytes, offset);
}

inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace gpuwatch::identify
