// SPDX-License-Identifier: Apache-2.0
#include "daemon/netlink_sink.h"

#include <algorithm>

#include "netlink/submitter.h"

namespace gpuwatch::daemon {

using base::Result;
using base::Status;

namespace {

netlink::VerdictKind kind_of(const std::string& verdict) {
  for (std::uint32_t i = 1; i <= static_cast<std::uint32_t>(netlink::VerdictKind::kTampered); ++i)
    if (netlink::verdict_word(static_cast<netlink::VerdictKind>(i)) == verdict)
      return static_cast<netlink::VerdictKind>(i);
  return netlink::VerdictKind::kNone;
}

class NetlinkSink final : public sink::Sink {
 public:
  explicit NetlinkSink(netlink::Submitter submitter) : submitter_(std::move(submitter)) {}

  std::string_view name() const override { return "netlink"; }
  bool wants(const sink::Item& item) const override {
    return item.kind == sink::ItemKind::kAlert || (item.kind == sink::ItemKind::kEvent && !item.verdict.empty());
  }

  sink::Outcome write(std::span<const sink::ItemPtr> items) override {
    sink::Outcome outcome;
    for (const sink::ItemPtr& item : items) {
      const Status status = submitter_.submit(message_of(*item));
      if (!status.ok()) {
        outcome.error = status.error();
        // The rest may have a better fate: a module that is being reloaded.
        outcome.refused = 1;
        return outcome;
      }
      ++outcome.sent;
    }
    return outcome;
  }

 private:
  static netlink::VerdictMessage message_of(const sink::Item& item) {
    netlink::VerdictMessage message;
    message.verdict = kind_of(item.verdict);
    message.severity = static_cast<netlink::Severity>(static_cast<std::uint32_t>(item.severity) + 1);
    message.rule = item.rule;
    message.text = relayed_text(item);
    message.container = item.container_id;
    if (item.pid > 0) message.pid = static_cast<std::uint32_t>(item.pid);
    if (item.cgroup_id != 0) message.cgroup_id = item.cgroup_id;
    if (item.gpu_minor >= 0) message.gpu_minor = static_cast<std::uint32_t>(item.gpu_minor);
    return message;
  }

  netlink::Submitter submitter_;
};

}  // namespace

std::string relayed_text(const sink::Item& item) {
  std::string text;
  if (!item.title.empty()) text = item.title + ": ";
  if (!item.process.empty()) text += item.process + ": ";
  return text += item.text.substr(std::min(item.words_at, item.text.size()));
}

Result<std::unique_ptr<sink::Sink>> open_netlink_sink() {
  auto submitter = netlink::Submitter::open();
  if (!submitter) return std::move(submitter.error());
  return std::unique_ptr<sink::Sink>(new NetlinkSink(std::move(*submitter)));
}

}  // namespace gpuwatch::daemon
