// SPDX-License-Identifier: Apache-2.0
// Item: one thing to tell the outside, ready to be written, shared by all sinks
// and never changed. Sink: where items go. A sink may block, fail or hang: its
// SinkQueue (queue.h) calls it on a thread of its own, so it harms nobody else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace gpuwatch::sink {

enum class ItemKind : std::uint8_t { kEvent, kAlert, kLoss };

constexpr std::string_view item_kind_name(ItemKind kind) {
  constexpr std::string_view kNames[] = {"event", "alert", "loss"};
  return kNames[static_cast<std::size_t>(kind)];
}

// As in JSON, and in the order of weight.
enum class Severity : std::uint8_t { kInfo, kNotice, kWarning, kError, kCritical };
inline constexpr std::size_t kSeverities = 5;

constexpr std::string_view severity_name(Severity severity) {
  constexpr std::string_view kNames[kSeverities] = {"info", "notice", "warning", "error", "critical"};
  return kNames[static_cast<std::size_t>(severity)];
}

// Values that are not known or do not apply are empty, -1 or 0.
struct Item {
  ItemKind kind = ItemKind::kEvent;
  Severity severity = Severity::kInfo;
  std::uint64_t time_unix_ns = 0;
  std::string json;  // one line of gpuwatch-json(5), without its newline
  std::string text;  // one line for people, escaped, without its newline
  // Where in it the words on what happened begin, behind the columns before them.
  std::size_t words_at = 0;

  // What metrics and the journal tell apart.
  std::string event;       // "module.load"; of an alert: that of its event; of raw lines their type
  std::string rule;        // of an alert
  std::string title;       // of an alert, escaped: what its rule says of such events
  std::string verdict;     // of events that have one
  std::string attack;      // of an alert: ATT&CK ids with blanks between
  std::string alert_id;    // of an alert
  std::string reason;      // of a loss
  std::uint64_t lost = 0;  // of a loss: how many
  std::uint64_t cgroup_id = 0;
  std::string container_id;
  std::string process;  // its name, escaped
  std::int64_t pid = 0;
  std::int64_t uid = -1;
  std::int32_t gpu_minor = -1;

  std::size_t bytes() const {
    return sizeof *this + json.size() + text.size() + event.size() + rule.size() + title.size() + process.size() +
           verdict.size() + attack.size() + alert_id.size() + reason.size() + container_id.size();
  }
};

using ItemPtr = std::shared_ptr<const Item>;

// What became of a batch: its first `sent` items arrived, the `refused` behind
// them never will. The rest failed with `error`; with `retry` it is given again
// after a while. A Status is an outcome too: all arrived, or all failed for good.
struct Outcome {
  static constexpr std::size_t kAll = static_cast<std::size_t>(-1);

  std::size_t sent = 0;
  std::size_t refused = 0;
  bool retry = false;
  std::chrono::milliseconds retry_after{0};  // at least; 0: the queue's own back-off
  std::optional<base::Error> error;

  Outcome() = default;
  Outcome(base::Status status) : sent(status.ok() ? kAll : 0) {  // NOLINT: implicit by intent
    if (!status.ok()) error = status.error();
  }
  static Outcome all() { return Outcome(base::Status()); }
  static Outcome again(base::Error error, std::size_t sent = 0) {
    Outcome outcome{base::Status(std::move(error))};
    outcome.sent = sent;
    outcome.retry = true;
    return outcome;
  }
  static Outcome wait(std::chrono::milliseconds time, std::size_t sent = 0) {
    Outcome outcome;
    outcome.sent = sent;
    outcome.retry = true;
    outcome.retry_after = time;
    return outcome;
  }
};

class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  // For counters and messages: "file", "webhook". Lives as long as the sink.
  virtual std::string_view name() const = 0;

  // Whether the item is for this sink. Called by the producer on its thread:
  // must be quick and must not change anything.
  virtual bool wants(const Item&) const { return true; }

  // All of these are called by the queue's thread, which has all signals
  // blocked, one at a time. An exception counts as a failure of the whole batch.
  virtual Outcome write(std::span<const ItemPtr> items) = 0;
  virtual base::Status flush() { return {}; }   // at stop and on SinkQueue::flush
  virtual base::Status reopen() { return {}; }  // another program moved the file away

  // Called by another thread when time is up: write() should return soon.
  virtual void cancel() {}
};

}  // namespace gpuwatch::sink
