// SPDX-License-Identifier: Apache-2.0
// Lookup in tables/security.in (which calls are findings, and whose habit they
// are) and tables/engines.in. Internal to decode.
#pragma once

#include <cstdint>
#include <string_view>

#include "model/call.h"

namespace gpuwatch::decode {

enum class SecuritySpace : std::uint8_t { kClass, kControl, kEscape, kUvm };
enum class Habit : std::uint8_t { kNone, kCuda, kMonitor, kQuery, kEvent, kOwn };

struct SecurityEntry {
  std::uint32_t number;
  std::uint8_t space;
  std::uint8_t privilege;
  std::uint8_t mutates;
  std::uint8_t habit;
  std::uint8_t reason;

  Habit habit_of() const { return static_cast<Habit>(habit); }
};

// nullptr where the table has no line.
const SecurityEntry* find_security(SecuritySpace space, std::uint32_t number);
// Place of a line in the table, for sets of them.
std::size_t security_place(const SecurityEntry& entry);
std::size_t security_count();
std::string_view security_reason(const SecurityEntry& entry);
std::string_view security_privilege(const SecurityEntry& entry);

// Empty where the number has no name.
std::string_view engine_name(std::uint64_t number);

}  // namespace gpuwatch::decode
