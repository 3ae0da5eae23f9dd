// SPDX-License-Identifier: Apache-2.0
#include "scan/maps.h"

#include <charconv>
#include <cstdio>
#include <optional>

namespace gpuwatch::scan {

namespace {

// Takes a number and the character behind it off the front.
std::optional<std::uint64_t> take_number(std::string_view& text, int base, char behind) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  const auto used = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || used >= text.size() || text[used] != behind) return std::nullopt;
  text.remove_prefix(used + 1);
  return value;
}

std::optional<Mapping> parse_line(std::string_view line) {
  Mapping mapping;
  const auto begin = take_number(line, 16, '-');
  const auto end = begin ? take_number(line, 16, ' ') : std::nullopt;
  if (!end || *end <= *begin || line.size() < 5 || line[4] != ' ') return std::nullopt;
  mapping.begin = *begin;
  mapping.end = *end;
  mapping.readable = line[0] == 'r';
  mapping.writable = line[1] == 'w';
  line.remove_prefix(5);
  const auto offset = take_number(line, 16, ' ');
  const auto major = offset ? take_number(line, 16, ':') : std::nullopt;
  const auto minor = major ? take_number(line, 16, ' ') : std::nullopt;
  if (!minor) return std::nullopt;
  mapping.offset = *offset;
  mapping.device = static_cast<std::uint32_t>(*major << 20 | (*minor & 0xfffff));
  const auto [at, error] = std::from_chars(line.data(), line.data() + line.size(), mapping.inode);
  if (error != std::errc()) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(at - line.data()));
  const std::size_t path = line.find_first_not_of(' ');
  if (path != std::string_view::npos) mapping.path = std::string(line.substr(path));
  return mapping;
}

}  // namespace

std::vector<Mapping> parse_maps(std::string_view text) {
  std::vector<Mapping> mappings;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (auto mapping = parse_line(text.substr(0, end))) mappings.push_back(std::move(*mapping));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return mappings;
}

std::string range_name(const Mapping& mapping) {
  char name[48];
  std::snprintf(name, sizeof name, "%llx-%llx", static_cast<unsigned long long>(mapping.begin),
                static_cast<unsigned long long>(mapping.end));
  return name;
}

}  // namespace gpuwatch::scan
