// SPDX-License-Identifier: Apache-2.0
// GroupStream: from datagrams of one group to items: parses, counts what is
// missing, and says so where it is missing. It owns no socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "netlink/sequence.h"
#include "netlink/subscriber.h"

namespace gpuwatch::netlink {

class GroupStream {
 public:
  explicit GroupStream(Group group) : group_(group) {}

  void start(std::uint64_t instance, std::uint64_t last) { sequence_.start(instance, last); }

  // One datagram, which may hold several messages; `family` is the number that
  // messages of ours have. Items go behind `out`.
  void datagram(std::span<const std::byte> bytes, int family, std::vector<Item>& out);
  // The socket said ENOBUFS.
  void overrun(std::vector<Item>& out);
  // The datagram was larger than any message of ours.
  void damaged(std::vector<Item>& out);
  void membership(bool joined, std::vector<Item>& out);

  const Subscriber::Totals& totals() const { return totals_; }
  std::uint32_t period_ms() const { return period_ms_; }

 private:
  void message(Message message, std::vector<Item>& out);

  Group group_;
  Sequence sequence_;
  Subscriber::Totals totals_;
  std::uint32_t period_ms_ = 1000;
};

}  // namespace gpuwatch::netlink
