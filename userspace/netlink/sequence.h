// SPDX-License-Identifier: Apache-2.0
// Sequence: how many messages of one group are missing, from the numbers on those
// that came. It does not know why they are missing.
#pragma once

#include <cstdint>
#include <optional>

namespace gpuwatch::netlink {

class Sequence {
 public:
  // What was asked for after joining: whatever has a later number comes, or is lost.
  void start(std::uint64_t instance, std::uint64_t last) {
    instance_ = instance;
    last_ = last;
  }

  // The number of messages missing right before this one. A heartbeat repeats
  // the last number. Another instance of the module began with 1.
  std::uint64_t see(std::uint64_t instance, std::uint64_t seq, bool heartbeat) {
    if (!instance_) {
      start(instance, heartbeat || seq == 0 ? seq : seq - 1);
    } else if (*instance_ != instance) {
      start(instance, 0);
    }
    const std::uint64_t expected = heartbeat ? last_ : last_ + 1;
    const std::uint64_t missing = seq > expected ? seq - expected : 0;
    if (seq > last_) last_ = seq;
    return missing;
  }

  std::optional<std::uint64_t> instance() const { return instance_; }
  std::uint64_t last() const { return last_; }

 private:
  std::optional<std::uint64_t> instance_;
  std::uint64_t last_ = 0;
};

}  // namespace gpuwatch::netlink
