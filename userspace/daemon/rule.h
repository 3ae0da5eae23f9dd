// SPDX-License-Identifier: Apache-2.0
// Rule: which events are worth an alert, and what is to be done then. Passive;
// read from YAML by read_rules(), applied by matcher.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "sink/sink.h"

namespace YAML {
class Node;
}

namespace gpuwatch::daemon {

class Errors;

enum class Field : std::uint8_t {
#define FIELD(enumerator, key, type, meaning) enumerator,
#include "daemon/rule_keys.def"
#undef FIELD
  kCount_,
};
inline constexpr std::size_t kFields = static_cast<std::size_t>(Field::kCount_);

enum class FieldType : std::uint8_t { kName, kPattern, kNumber, kBool };
struct FieldInfo {
  std::string_view key;
  FieldType type;
  std::string_view meaning;
};
const FieldInfo& field_info(Field field);

// Values by field; a field without values was not asked for.
struct Conditions {
  std::array<std::vector<std::string>, kFields> values;
  bool empty() const {
    for (const auto& list : values)
      if (!list.empty()) return false;
    return true;
  }
};

enum class GroupBy : std::uint8_t { kRule, kProcess, kContainer, kUser, kGpu };

// So many in so much time, counted for each of a group.
struct Rate {
  std::uint64_t count = 0;  // 0: no rate
  std::uint64_t per_ns = 0;
  GroupBy by = GroupBy::kRule;
};

inline constexpr unsigned kActionAlert = 1;
inline constexpr unsigned kActionLog = 2;
inline constexpr unsigned kActionWebhook = 4;
inline constexpr unsigned kActionExec = 8;
inline constexpr unsigned kActionDump = 16;

struct Rule {
  std::string name;
  std::string message;
  sink::Severity severity = sink::Severity::kWarning;
  std::vector<std::string> attack;  // "T1496"
  Conditions when, unless;
  Rate rate;                                       // alert only when reached
  Rate limit{10, 60'000'000'000, GroupBy::kRule};  // alerts, at most
  unsigned actions = kActionAlert;
  bool enabled = true;
  std::string place;  // file:line:column
};

// Appends the rules of a list. All that is wrong is told.
void read_rules(const YAML::Node& node, std::vector<Rule>& rules, Errors& errors);

// Names are those of alerts: two rules cannot share one.
void check_rule_names(const std::vector<Rule>& rules, std::vector<std::string>& errors);

// The part of the manual about rules, as roff.
std::string rule_keys_as_manual();

}  // namespace gpuwatch::daemon
