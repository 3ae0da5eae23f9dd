// SPDX-License-Identifier: Apache-2.0
#include "cli/top/cells.h"

#include <cstdio>

#include "base/escape.h"

namespace gpuwatch::cli::top {

namespace {

// Of valid UTF-8.
std::uint32_t code_point(std::string_view text, std::size_t& bytes) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char lead = byte(0);
  bytes = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
  if (bytes > text.size()) bytes = text.size();
  if (bytes == 1) return lead;
  std::uint32_t value = lead & (0xffU >> (bytes + 1));
  for (std::size_t i = 1; i < bytes; ++i) value = value << 6 | (byte(i) & 0x3fU);
  return value;
}

struct Range {
  std::uint32_t first, last;
};

template <std::size_t N>
bool within(const Range (&ranges)[N], std::uint32_t c) {
  for (const Range& range : ranges)
    if (c >= range.first && c <= range.last) return true;
  return false;
}

// What joins or changes the character before it. Terminals disagree about the
// width, so it is shown by its bytes.
bool no_width(std::uint32_t c) {
  static constexpr Range kRanges[] = {
      {0x0300, 0x036f},   {0x0483, 0x0489}, {0x0591, 0x05c7},   {0x0610, 0x061a}, {0x064b, 0x065f}, {0x0670, 0x0670},
      {0x06d6, 0x06ed},   {0x0711, 0x0711}, {0x0730, 0x074a},   {0x07a6, 0x07b0}, {0x0816, 0x082d}, {0x0900, 0x0903},
      {0x093a, 0x094f},   {0x0951, 0x0957}, {0x0981, 0x0d4d},   {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e},
      {0x0eb1, 0x0ebc},   {0x0ec8, 0x0ecd}, {0x0f18, 0x0fc6},   {0x102b, 0x103e}, {0x1160, 0x11ff}, {0x135d, 0x135f},
      {0x1712, 0x1714},   {0x17b4, 0x17d3}, {0x180b, 0x180f},   {0x1885, 0x1886}, {0x1a55, 0x1b34}, {0x1ab0, 0x1aff},
      {0x1dc0, 0x1dff},   {0x20d0, 0x20ff}, {0x2cef, 0x2cf1},   {0x2de0, 0x2dff}, {0x302a, 0x302f}, {0x3099, 0x309a},
      {0xa66f, 0xa67d},   {0xa8e0, 0xa8f1}, {0xfe00, 0xfe0f},   {0xfe20, 0xfe2f}, {0xfff0, 0xfffb}, {0x1f3fb, 0x1f3ff},
      {0xe0000, 0xe0fff}, {0xe000, 0xf8ff}, {0xf0000, 0x10ffff}};
  return within(kRanges, c);
}

bool wide(std::uint32_t c) {
  static constexpr Range kRanges[] = {
      {0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},   {0x23f0, 0x23f0},
      {0x23f3, 0x23f3},   {0x25fd, 0x25fe},   {0x2614, 0x2615},   {0x2648, 0x2653},   {0x267f, 0x267f},
      {0x2693, 0x2693},   {0x26a1, 0x26a1},   {0x26aa, 0x26ab},   {0x26bd, 0x26be},   {0x26c4, 0x26c5},
      {0x26ce, 0x26ce},   {0x26d4, 0x26d4},   {0x26ea, 0x26ea},   {0x26f2, 0x26f3},   {0x26f5, 0x26f5},
      {0x26fa, 0x26fa},   {0x26fd, 0x26fd},   {0x2705, 0x2705},   {0x270a, 0x270b},   {0x2728, 0x2728},
      {0x274c, 0x274c},   {0x274e, 0x274e},   {0x2753, 0x2755},   {0x2757, 0x2757},   {0x2795, 0x2797},
      {0x27b0, 0x27b0},   {0x27bf, 0x27bf},   {0x2b1b, 0x2b1c},   {0x2b50, 0x2b50},   {0x2b55, 0x2b55},
      {0x2e80, 0x303e},   {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
      {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},
      {0xffe0, 0xffe6},   {0x16fe0, 0x18aff}, {0x1b000, 0x1b2ff}, {0x1f004, 0x1f004}, {0x1f0cf, 0x1f0cf},
      {0x1f18e, 0x1f18e}, {0x1f191, 0x1f19a}, {0x1f200, 0x1f265}, {0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff},
      {0x1f7e0, 0x1f7eb}, {0x1f900, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd}};
  return within(kRanges, c);
}

std::string number(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

}  // namespace

std::string safe(std::string_view bytes, bool ascii) {
  const std::string escaped = base::escaped(bytes);
  std::string out;
  for (std::string_view left = escaped; !left.empty();) {
    std::size_t n = 0;
    const std::uint32_t c = code_point(left, n);
    if (c < 0x80 || (!ascii && !no_width(c))) {
      out.append(left.substr(0, n));
    } else {
      static constexpr char kDigits[] = "0123456789abcdef";
      for (const char byte : left.substr(0, n)) {
        const auto b = static_cast<unsigned char>(byte);
        out += {'\\', 'x', kDigits[b >> 4], kDigits[b & 15]};
      }
    }
    left.remove_prefix(n);
  }
  return out;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    std::size_t n = 0;
    columns += wide(code_point(text, n)) ? 2 : 1;
    text.remove_prefix(n);
  }
  return columns;
}

std::string fit(std::string_view text, std::size_t columns, bool ascii, Side side) {
  const std::size_t all = columns_of(text);
  if (all <= columns) {
    const std::string fill(columns - all, ' ');
    return side == Side::kLeft ? std::string(text) + fill : fill + std::string(text);
  }
  if (columns == 0) return {};
  std::string out;
  std::size_t used = 0;
  while (!text.empty()) {
    std::size_t n = 0;
    const std::size_t each = wide(code_point(text, n)) ? 2 : 1;
    if (used + each > columns - 1) break;
    out.append(text.substr(0, n));
    used += each;
    text.remove_prefix(n);
  }
  out += ascii ? "~" : "\xe2\x80\xa6";
  out.append(columns - 1 - used, ' ');
  return out;
}

std::string age_text(std::uint64_t ns) {
  const std::uint64_t seconds = ns / 1'000'000'000;
  char text[32];
  const auto two = [&](const char* format, std::uint64_t a, std::uint64_t b) {
    std::snprintf(text, sizeof text, format, static_cast<unsigned long long>(a), static_cast<unsigned long long>(b));
    return std::string(text);
  };
  if (seconds < 10) return number("%.1fs", static_cast<double>(ns / 100'000'000) / 10);
  if (seconds < 60) return std::to_string(seconds) + "s";
  if (seconds < 3600) return two("%llum%02llus", seconds / 60, seconds % 60);
  if (seconds < 86400) return two("%lluh%02llum", seconds / 3600, seconds / 60 % 60);
  return two("%llud%02lluh", seconds / 86400, seconds / 3600 % 24);
}

std::string size_text(std::uint64_t bytes) {
  if (bytes == 0) return "0";
  static constexpr char kUnits[] = {'K', 'M', 'G', 'T', 'P', 'E'};
  double value = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  while (value >= 1000 && unit + 1 < sizeof kUnits) {
    value /= 1024;
    ++unit;
  }
  return number(value < 9.95 ? "%.1f" : "%.0f", value) + kUnits[unit];
}

std::string rate_text(double per_second) {
  if (per_second <= 0) return "0";
  if (per_second < 9.95) return number("%.1f", per_second);
  if (per_second < 99'999.5) return number("%.0f", per_second);
  return per_second < 99'999'500 ? number("%.0fk", per_second / 1e3) : number("%.0fM", per_second / 1e6);
}

std::string clock_text(std::uint64_t time_ns, std::int64_t realtime_offset_ns, std::int32_t utc_offset_s) {
  // Both may be any number: unsigned sums wrap, and a clock shows something.
  const auto at_ns = static_cast<std::int64_t>(time_ns + static_cast<std::uint64_t>(realtime_offset_ns));
  std::int64_t seconds = (at_ns / 1'000'000'000 + utc_offset_s) % 86400;
  if (seconds < 0) seconds += 86400;
  char text[32];
  std::snprintf(text, sizeof text, "%02d:%02d:%02d", static_cast<int>(seconds / 3600),
                static_cast<int>(seconds / 60 % 60), static_cast<int>(seconds % 60));
  return text;
}

}  // namespace gpuwatch::cli::top
