// SPDX-License-Identifier: Apache-2.0
// Holds the generated table of findings. Only lookup here; what makes a finding
// is story_security.cpp's.
#include "decode/security.h"

#include <iterator>

namespace gpuwatch::decode {

namespace {
#include "security_data.inc"
}  // namespace

const SecurityEntry* find_security(SecuritySpace space, std::uint32_t number) {
  const auto kind = static_cast<std::uint32_t>(space);
  constexpr std::uint32_t kMask = std::size(kSecurityIndex) - 1;
  for (std::uint32_t slot = ((number + kind * 0x85EBCA6BU) * 0x9E3779B1U) >> kSecurityShift; kSecurityIndex[slot] != 0;
       slot = (slot + 1) & kMask) {
    const SecurityEntry& entry = kSecurity[kSecurityIndex[slot] - 1];
    if (entry.number == number && entry.space == kind) return &entry;
  }
  return nullptr;
}

std::size_t security_place(const SecurityEntry& entry) {
  return static_cast<std::size_t>(&entry - kSecurity);
}

std::size_t security_count() {
  return std::size(kSecurity);
}

std::string_view security_reason(const SecurityEntry& entry) {
  return kReasons[entry.reason];
}

std::string_view security_privilege(const SecurityEntry& entry) {
  return kPrivilegeNames[entry.privilege];
}

std::string_view engine_name(std::uint64_t number) {
  return number < std::size(kEngines) ? kEngines[number] : std::string_view{};
}

}  // namespace gpuwatch::decode
