// SPDX-License-Identifier: Apache-2.0
#include "base/escape.h"

#include <cstdint>

namespace gpuwatch::base {

namespace {

struct CodePoint {
  std::uint32_t value;
  std::size_t bytes;  // 0: not UTF-8
};

CodePoint decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t n = lead >= 0xf0 && lead < 0xf5   ? 4
                        : lead >= 0xe0 && lead < 0xf0 ? 3
                        : lead >= 0xc2 && lead < 0xe0 ? 2
                                                      : 0;
  if (n == 0 || text.size() < n) return {0, 0};
  std::uint32_t value = lead & (0xff >> (n + 1));
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {0, 0};
    value = (value << 6) | (byte(i) & 0x3f);
  }
  const bool overlong = (n == 3 && value < 0x800) || (n == 4 && value < 0x10000);
  if (overlong || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return {0, 0};
  return {value, n};
}

// C0 and C1 controls, line separators and the bidirectional overrides that
// can make a line read differently from what it says.
bool dangerous(std::uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == '\\' || c == 0x061c || (c >= 0x200b && c <= 0x200f) ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff;
}

void append_hex(std::string& out, char byte) {
  static constexpr char kDigits[] = "0123456789abcdef";
  const auto b = static_cast<unsigned char>(byte);
  out += {'\\', 'x', kDigits[b >> 4], kDigits[b & 15]};
}

}  // namespace

void append_escaped(std::string& out, std::string_view bytes) {
  while (!bytes.empty()) {
    const CodePoint c = decode(bytes);
    const std::size_t n = c.bytes == 0 ? 1 : c.bytes;
    if (c.bytes == 0 || dangerous(c.value)) {
      for (std::size_t i = 0; i < n; ++i) append_hex(out, bytes[i]);
    } else {
      out.append(bytes.substr(0, n));
    }
    bytes.remove_prefix(n);
  }
}

std::string escaped(std::string_view bytes) {
  std::string out;
  append_escaped(out, bytes);
  return out;
}

std::string to_utf8(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const CodePoint c = decode(bytes);
    if (c.bytes == 0) {
      out += "\xef\xbf\xbd";
      bytes.remove_prefix(1);
    } else {
      out.append(bytes.substr(0, c.bytes));
      bytes.remove_prefix(c.bytes);
    }
  }
  return out;
}

}  // namespace gpuwatch::base
