// SPDX-License-Identifier: Apache-2.0
#include "report/words.h"

#include <cmath>
#include <cstdio>

#include "publish/format.h"
#include "publish/text.h"

namespace gpuwatch::report {

std::string grouped(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string decimal(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string rate(std::uint64_t count, std::uint64_t span_ns) {
  if (span_ns == 0) return "-";
  const double value = static_cast<double>(count) * 1e9 / static_cast<double>(span_ns);
  return value >= 100 ? grouped(static_cast<std::uint64_t>(std::llround(value))) : decimal(value, value >= 10 ? 1 : 2);
}

std::string seconds(std::uint64_t ns) {
  return decimal(static_cast<double>(ns) / 1e9, 3) + " s";
}

std::string duration(std::uint64_t ns) {
  std::string out;
  publish::format::append_duration(out, ns);
  return out;
}

std::string bytes_text(std::uint64_t count) {
  std::string out;
  publish::append_bytes(out, count);
  return out;
}

std::string percent(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? "-" : decimal(100.0 * static_cast<double>(part) / static_cast<double>(whole), 1) + " %";
}

std::string plural(std::uint64_t count, const char* one, const char* many) {
  return grouped(count) + " " + (count == 1 ? one : many);
}

}  // namespace gpuwatch::report
