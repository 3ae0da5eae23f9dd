// SPDX-License-Identifier: Apache-2.0
// DriverVersion: the version of the NVIDIA driver that made a recording or is
// loaded, as in "580.159.04". Only parsed here; what it means is decode's.
#pragma once

#include <charconv>
#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuwatch::model {

struct DriverVersion {
  std::uint32_t major = 0;  // the branch; 0 means not known
  std::uint32_t minor = 0;
  std::uint32_t patch = 0;

  auto operator<=>(const DriverVersion&) const = default;
  bool known() const { return major != 0; }
};

// Two or three dotted numbers and nothing else; at most 32 characters.
inline std::optional<DriverVersion> parse_driver_version(std::string_view text) {
  if (text.empty() || text.size() > 32) return std::nullopt;
  DriverVersion version;
  std::uint32_t* parts[] = {&version.major, &version.minor, &version.patch};
  std::size_t count = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (count < 3) {
    const auto [next, error] = std::from_chars(at, end, *parts[count]);
    if (error != std::errc{} || next == at) return std::nullopt;
    ++count;
    at = next;
    if (at == end) break;
    if (*at != '.' || ++at == end) return std::nullopt;
  }
  if (at != end || count < 2 || version.major == 0) return std::nullopt;
  return version;
}

}  // namespace gpuwatch::model
