// SPDX-License-Identifier: Apache-2.0
// Matcher: applies the rules to events and losses, with rates and limits. State
// is bounded: over a bound the group that was quiet longest starts anew. It
// makes no items and starts no action.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "daemon/rule.h"
#include "model/actor.h"
#include "model/story.h"

namespace gpuwatch::daemon {

// What rules look at, of an event or of a loss.
struct Subject {
  const model::StoryEvent* event = nullptr;  // nothing: a loss
  const model::Actor* actor = nullptr;
  std::string_view loss_reason;
  std::uint64_t now_ns = 0;  // CLOCK_MONOTONIC
};

bool fits(const Conditions& when, const Conditions& unless, const Subject& subject);

// How many of one group in a period, as a sliding count that is exact for small
// counts and at most one period late.
class RateCounter {
 public:
  static constexpr std::size_t kGroupsMax = 4096;
  // One more; true where the rate is reached with it. Begins anew then.
  bool reached(const Rate& rate, const std::string& group, std::uint64_t now_ns);
  // One more, unless the rate is used up.
  bool allowed(const Rate& rate, const std::string& group, std::uint64_t now_ns);

 private:
  struct Times {
    std::deque<std::uint64_t> at;
    std::uint64_t last_ns = 0;
  };
  Times& times_of(const Rate& rate, const std::string& group, std::uint64_t now_ns);
  std::unordered_map<std::string, Times> groups_;
};

struct Hit {
  const Rule* rule = nullptr;
  std::uint64_t suppressed = 0;  // alerts of this rule held back since the last one
};

class Matcher {
 public:
  explicit Matcher(std::vector<Rule> rules);

  // Appends the rules that ask for an alert now.
  void look(const Subject& subject, std::vector<Hit>& hits);

  const std::vector<Rule>& rules() const { return rules_; }
  std::uint64_t suppressed(std::size_t rule) const { return state_[rule].suppressed_total; }

 private:
  struct State {
    RateCounter rate, limit;
    std::uint64_t suppressed = 0;
    std::uint64_t suppressed_total = 0;
  };
  std::vector<Rule> rules_;
  std::vector<State> state_;
  std::vector<std::vector<std::uint32_t>> by_kind_;  // the last one: losses
};

}  // namespace gpuwatch::daemon
