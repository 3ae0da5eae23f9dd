// SPDX-License-Identifier: Apache-2.0
// Numbers of the generic netlink family as types, and their names for text and
// JSON. A number this program does not know keeps its value and has no name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuwatch::netlink {

enum class Group : std::uint8_t { kEvents = 0, kVerdicts = 1 };
inline constexpr std::size_t kGroups = 2;

enum class VerdictKind : std::uint32_t {
  kNone = 0,  // a finding about something else than code
  kKnown = 1,
  kKnownKernels = 2,
  kJit = 3,
  kUnverified = 4,
  kUnknown = 5,
  kModified = 6,
  kDenied = 7,
  kTampered = 8,
};

enum class Severity : std::uint32_t { kInfo = 1, kNotice = 2, kWarning = 3, kError = 4, kCritical = 5 };

enum class EventKind : std::uint32_t {
  kOpen = 1,
  kClose = 2,
  kImage = 3,
  kAttached = 4,
  kDetached = 5,
  kDriverLive = 6,
  kDriverGoing = 7,
  kHooked = 8,
  kHookFailed = 9,
  kPlan = 10,
  kLoss = 11,
};

// Empty: no name for this number.
std::string_view group_name(Group group);
std::string_view verdict_word(VerdictKind verdict);
std::string_view severity_word(Severity severity);
std::string_view event_word(EventKind event);
std::string_view cause_word(std::uint32_t cause);
std::string_view node_word(std::uint32_t node_kind);
std::string_view image_word(std::uint32_t image_kind);
std::string_view op_word(std::uint32_t op);
std::string_view method_word(std::uint32_t method);

// The name, or "number-N".
std::string named(std::string_view name, std::uint32_t number);

}  // namespace gpuwatch::netlink
