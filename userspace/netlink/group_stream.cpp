// SPDX-License-Identifier: Apache-2.0
// Bounds of messages are checked here, those of attributes by the parser.
#include "netlink/group_stream.h"

#include <linux/netlink.h>

#include <cstring>

#include "base/clock.h"

namespace gpuwatch::netlink {

std::string_view loss_reason_word(LossReason reason) {
  constexpr std::string_view kNames[] = {"overrun", "missing", "reload", "damaged"};
  return kNames[static_cast<std::size_t>(reason)];
}

namespace {

// Of the groups that messages of this kind are sent to.
bool belongs(const Message& message, Group group) {
  if (std::holds_alternative<Event>(message)) return group == Group::kEvents;
  if (std::holds_alternative<Verdict>(message)) return group == Group::kVerdicts;
  return std::get<Heartbeat>(message).group == group;
}

}  // namespace

void GroupStream::message(Message message, std::vector<Item>& out) {
  if (!belongs(message, group_)) return damaged(out);
  const Stamp stamp = stamp_of(message);
  const auto* beat = std::get_if<Heartbeat>(&message);
  const bool known = sequence_.instance().has_value();
  const bool reloaded = known && *sequence_.instance() != stamp.instance;
  const std::uint64_t missing = sequence_.see(stamp.instance, stamp.seq, beat != nullptr);
  totals_.uncounted = false;
  if (missing != 0) {
    totals_.lost += missing;
    out.push_back(Loss{group_, reloaded ? LossReason::kReload : LossReason::kMissing, missing, stamp.realtime_ns});
  }
  if (beat != nullptr)
    period_ms_ = beat->period_ms;
  else
    ++totals_.messages;
  std::visit([&](auto&& one) { out.push_back(Item(std::forward<decltype(one)>(one))); }, std::move(message));
}

void GroupStream::datagram(std::span<const std::byte> bytes, int family, std::vector<Item>& out) {
  while (bytes.size() >= NLMSG_HDRLEN) {
    nlmsghdr header{};
    std::memcpy(&header, bytes.data(), sizeof header);
    if (header.nlmsg_len < NLMSG_HDRLEN || header.nlmsg_len > bytes.size()) return damaged(out);
    // Done, noop and the like, and families that are not ours, are nobody's loss.
    if (header.nlmsg_type == family) {
      auto parsed = parse_message(bytes.first(header.nlmsg_len));
      if (parsed.ok())
        message(std::move(*parsed), out);
      else if (parsed.error().code() != base::Code::kUnsupported)
        damaged(out);
    }
    bytes = bytes.subspan(std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), bytes.size()));
  }
  if (!bytes.empty()) damaged(out);
}

void GroupStream::overrun(std::vector<Item>& out) {
  ++totals_.overruns;
  totals_.uncounted = true;
  out.push_back(Loss{group_, LossReason::kOverrun, std::nullopt, base::realtime_ns()});
}

void GroupStream::damaged(std::vector<Item>& out) {
  ++totals_.damaged;
  out.push_back(Loss{group_, LossReason::kDamaged, 1, base::realtime_ns()});
}

void GroupStream::membership(bool joined, std::vector<Item>& out) {
  out.push_back(Membership{group_, joined, base::realtime_ns()});
}

}  // namespace gpuwatch::netlink
