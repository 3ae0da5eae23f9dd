// SPDX-License-Identifier: Apache-2.0
// JSON lines of what the daemon says itself: that a rule matched, that
// something was lost. Documented in man/gpuwatch-json.5.md. Who matches rules and
// counts losses is elsewhere. Passive views; nothing is kept.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace gpuwatch::publish {

// Empty and 0: left out. All strings may be untrusted but `story`.
struct AlertLine {
  std::uint64_t time_ns = 0;  // of the event, CLOCK_MONOTONIC
  std::uint64_t time_unix_ns = 0;
  std::string_view host_name;
  std::string_view alert_id;  // the same for the same alert, however often it is sent
  std::string_view rule;
  std::string_view severity;  // sink::severity_name()
  std::string_view title;     // one sentence
  std::string_view verdict;
  std::span<const std::string> attack;  // "T1496.001"
  std::uint64_t suppressed = 0;         // alerts of the rule that its rate limit held back before this one
  std::string_view event;               // "module.load"
  std::string_view story;               // the event's JSON line, by append_json_line()
};

struct LossLine {
  std::uint64_t time_ns = 0;  // when it was noticed
  std::uint64_t time_unix_ns = 0;
  std::string_view host_name;
  std::string_view source;  // "ring", "queue", "sink", "netlink"
  std::string_view name;    // which of them: "webhook"
  std::string_view reason;  // "ring_full", "full", "failed"
  std::uint64_t lost = 0;   // since the last line of this source and reason
  std::uint64_t lost_total = 0;
  std::uint64_t cgroup_id = 0;  // whose records, where one is to blame
};

// One line each, with its newline.
void append_json_alert(std::string& out, const AlertLine& alert);
void append_json_loss(std::string& out, const LossLine& loss);

}  // namespace gpuwatch::publish
