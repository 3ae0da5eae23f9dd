// SPDX-License-Identifier: Apache-2.0
// Digest: a SHA-256 value and its hexadecimal form. It computes nothing.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

namespace gpuwatch::identify {

using Digest = std::array<std::uint8_t, 32>;

inline std::string to_hex(const Digest& digest) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out(digest.size() * 2, '0');
  for (std::size_t i = 0; i < digest.size(); ++i) {
    out[2 * i] = kHex[digest[i] >> 4];
    out[2 * i + 1] = kHex[digest[i] & 15];
  }
  return out;
}

// A digest is uniformly distributed: any eight bytes of it are a hash.
struct DigestHash {
  std::size_t operator()(const Digest& digest) const {
    std::size_t value = 0;
    std::memcpy(&value, digest.data(), sizeof value);
    return value;
  }
};

}  // namespace gpuwatch::identify
