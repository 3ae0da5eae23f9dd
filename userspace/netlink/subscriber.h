// SPDX-License-Identifier: Apache-2.0
// Subscriber: joins groups of the family and hands over what comes, each loss as
// an item of its own. It joins again when the module was loaded anew. It prints
// nothing, and never waits longer than it is told.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "netlink/message.h"

namespace gpuwatch::netlink {

enum class LossReason : std::uint8_t {
  kOverrun,  // the socket's buffer was full; how many is known by a later number
  kMissing,  // numbers that never came
  kReload,   // numbers of a module loaded anew, given out before we joined again
  kDamaged,  // a message that could not be read
};

struct Loss {
  Group group{};
  LossReason reason{};
  std::optional<std::uint64_t> count;  // nothing: not known (yet)
  std::uint64_t realtime_ns = 0;
};

// The module went, or came (back) and the group was joined.
struct Membership {
  Group group{};
  bool joined = false;
  std::uint64_t realtime_ns = 0;
};

using Item = std::variant<Event, Verdict, Heartbeat, Loss, Membership>;

std::string_view loss_reason_word(LossReason reason);

struct SubscriberOptions {
  std::vector<Group> groups;
  std::size_t buffer_bytes = 8 << 20;  // of each group's socket
};

class Subscriber {
 public:
  // kNotFound: the module is not loaded. kPermission: CAP_NET_ADMIN is missing.
  static base::Result<std::unique_ptr<Subscriber>> open(const SubscriberOptions& options);
  ~Subscriber();
  Subscriber(const Subscriber&) = delete;
  Subscriber& operator=(const Subscriber&) = delete;

  // Waits for messages up to `timeout` (or a signal), then calls `see` for all
  // that came; it gives false to stop after that item, the rest comes next time.
  base::Status poll(std::chrono::milliseconds timeout, const std::function<bool(const Item&)>& see);

  struct Totals {
    std::uint64_t messages = 0;  // heartbeats not counted
    std::uint64_t lost = 0;      // by number
    std::uint64_t overruns = 0;
    std::uint64_t damaged = 0;
    bool uncounted = false;  // an overrun whose count is not known yet

    bool any_loss() const { return lost != 0 || overruns != 0 || damaged != 0; }
  };
  Totals totals() const;

 private:
  class Impl;
  explicit Subscriber(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace gpuwatch::netlink
